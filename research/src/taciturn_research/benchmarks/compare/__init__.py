"""Comparison pages: features, utility and speed beside other libraries, written from stored measurements."""
