"""Private scores of a model on a table."""
