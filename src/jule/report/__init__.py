"""The page of a run: a summary as a plain dict, sheets of thumbnails, and one HTML file."""

from jule.report.report import Report
from jule.report.summary import summarize

__all__ = ["Report", "summarize"]
