"""The Kafka broker: its configuration, the console tools, and the topics of the stack."""
