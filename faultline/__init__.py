"""Everything that starts, breaks, reads, judges and shows the stack. Imports go down only: docs/architecture.md."""
