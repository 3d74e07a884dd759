"""State, watermark and a Delta source's position in a checkpoint."""
