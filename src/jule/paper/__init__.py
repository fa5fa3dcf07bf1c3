"""The paper's experiments, its numbers as data, and tables rendered from results/."""
