"""What the labs have in common: flags, folder, story, broker, queries, counting."""
