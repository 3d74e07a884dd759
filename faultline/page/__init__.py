"""The live page: the log, the checkpoints and what is read again, drawn from a running stack or from a recorded run."""
