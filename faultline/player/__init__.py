"""The page itself: items, HTML and scripts, which draw a running stack and play a recorded run in the same way."""
