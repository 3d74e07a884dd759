"""Who holds readers of committed records back: open transactions, who promised them, and how each is ended rightly."""
