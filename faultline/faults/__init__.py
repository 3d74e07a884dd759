"""The fault matrix: real failures on a real stack, timed, and judged from the records."""
