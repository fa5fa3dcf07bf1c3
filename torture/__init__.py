"""Campaigns that try to break the program: `python -m torture`, results in results/reliability.json."""
