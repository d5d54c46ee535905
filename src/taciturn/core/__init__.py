"""Errors, validation and randomness: what every other room may use."""
