"""The source topic and the ledger of its generator."""
