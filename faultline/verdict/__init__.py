"""The judge: expected records from the topic, observed ones from the outputs, their difference, an outcome."""
