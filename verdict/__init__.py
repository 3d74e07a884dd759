"""The judge: expected from the topic, observed from the outputs, their multiset difference, one of three outcomes."""
