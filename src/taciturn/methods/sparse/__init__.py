"""The default model."""
