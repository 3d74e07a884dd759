"""Common parts of the labs: flags, folder, story, broker, queries, counting."""
