"""The verbs behind the scripts: each reads the words of a command line, calls the stack, and prints the result."""
