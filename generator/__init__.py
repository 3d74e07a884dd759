"""Visits of imaginary users, the same for the same seed and start, sent to Kafka or printed."""
