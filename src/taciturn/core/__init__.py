"""Errors, validation and randomness: what every other subpackage may use."""
