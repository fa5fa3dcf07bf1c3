"""Benchmarks of speed and memory against other libraries, written to results/."""
