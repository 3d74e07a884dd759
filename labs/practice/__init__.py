"""Lab 06: changing a query that has a checkpoint, moving it, and reading a source again."""
