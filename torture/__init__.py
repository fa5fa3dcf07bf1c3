"""Campaigns that try to break the program: `python -m torture`; see docs/reliability.md."""
