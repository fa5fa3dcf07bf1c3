"""Decoding of pictures to one size: surveys, worker processes and the cache."""
