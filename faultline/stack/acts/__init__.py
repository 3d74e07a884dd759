"""The acts of a stack: each takes the stack that it changes or asks, and `Stack` has a method for it."""
