"""The paper's experiments, its numbers as data, and its tables rendered from results/."""
