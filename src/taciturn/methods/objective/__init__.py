"""Objective perturbation, private ADMM, and the two-stage method."""
