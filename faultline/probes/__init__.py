"""Small measurements on a running stack, for walkthroughs and for people."""
