"""Decode pictures to one size and colour mode: surveys, worker processes and the cache."""
