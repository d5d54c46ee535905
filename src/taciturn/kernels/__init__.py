"""Compiled inner loops: deterministic functions of arrays, each with a numpy version."""
