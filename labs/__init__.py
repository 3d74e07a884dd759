"""The Spark labs: experiments on checkpoints that prove what they say. README.md lists them."""
