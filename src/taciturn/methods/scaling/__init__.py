"""Scalers with public or private bounds."""
