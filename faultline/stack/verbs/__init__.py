"""The verbs behind the scripts: one function for each, `run(stack, words)`, which returns the exit code."""
