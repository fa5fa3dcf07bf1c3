"""Speed and scale against real peers: ratios of things timed in one run, written to results/."""
