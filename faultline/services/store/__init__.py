"""The stack's own object store: SeaweedFS with its data on disk, its key, and the bucket of the stack's data."""
