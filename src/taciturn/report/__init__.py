"""Reports: one HTML file that says what a model is and what it gives away."""

from taciturn.report.model_report import model_report
from taciturn.report.page import Drawing, Page

__all__ = ["Drawing", "Page", "model_report"]
