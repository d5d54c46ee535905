"""Survival: curves, and hazards that are constant between public cuts."""
