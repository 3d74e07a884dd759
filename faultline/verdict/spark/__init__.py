"""The output of the synchronizer: its places, its files, its checkpoint, and the judge of them."""
