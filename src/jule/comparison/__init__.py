"""Compare clustering methods on the same samples: run them, score them, and see which agree."""
