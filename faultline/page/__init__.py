"""The live page: samples a running stack while somebody looks, serves them, and has buttons that break it."""
