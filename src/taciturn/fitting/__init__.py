"""Solvers: loops of gradient, release and step. They never see epsilon."""
