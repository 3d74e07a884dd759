"""Open transactions that hold back readers of committed records: who promised them, and the right end of each."""
