"""``model.json``, a fitted model with its bounds and certificate, and ``score.json``, how good it is."""

from taciturn.modelfile.model import Model, load
from taciturn.modelfile.score import ScoreFile, model_digest

__all__ = ["Model", "ScoreFile", "load", "model_digest"]
