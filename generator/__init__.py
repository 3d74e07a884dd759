"""Visits of imaginary users, sent to Kafka or printed; the same seed and start give the same visits."""
