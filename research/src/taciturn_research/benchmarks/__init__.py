"""Benchmarks: ratios to named baselines, measured in one run."""
