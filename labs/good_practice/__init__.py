"""Walkthrough 16: changing a query that has a checkpoint, moving it, and reading a source again."""
