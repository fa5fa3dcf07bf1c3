"""The page of a run: a summary as a plain dict, pictures in sheets, and one HTML file."""

from jule.report.report import Report
from jule.report.summary import summarize

__all__ = ["Report", "summarize"]
