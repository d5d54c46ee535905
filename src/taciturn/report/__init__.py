"""Reports: one HTML file about a model, its guarantee and its releases, or about an account."""

from taciturn.drawing.svg import Drawing
from taciturn.report.account_page import account_page
from taciturn.report.model_report import model_report
from taciturn.report.page import Page

__all__ = ["Drawing", "Page", "account_page", "model_report"]
