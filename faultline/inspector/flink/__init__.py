"""Flink checkpoints and savepoints, read by Flink's own classes. Runs in the Flink environment."""
