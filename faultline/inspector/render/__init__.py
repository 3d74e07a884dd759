"""A Report as prose, as tables or as JSON."""
