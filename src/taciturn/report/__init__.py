"""Reports: one HTML file about a model, its guarantee and its releases."""

from taciturn.report.model_report import model_report
from taciturn.report.page import Drawing, Page

__all__ = ["Drawing", "Page", "model_report"]
