"""Probes: small functions that run in the environment of a library and tell whether it has a feature."""
