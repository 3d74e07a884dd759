"""What the scripts do: one function for each, `run(stack, words)`, which returns the exit code."""
