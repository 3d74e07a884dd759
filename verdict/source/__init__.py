"""The source topic beside the ledger of who sent it."""
