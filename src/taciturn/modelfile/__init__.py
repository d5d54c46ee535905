"""``model.json``: a fitted model with its feature names, bounds, standard errors and certificate."""

from taciturn.modelfile.model import Model, load

__all__ = ["Model", "load"]
