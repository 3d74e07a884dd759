"""Delete X, then start: a catalogue of damages to a checkpoint, each run and counted."""
