"""Speed and memory against real peers: ratios of two things timed in one run, in results/."""
