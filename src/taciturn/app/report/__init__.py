"""Reports of models and accounts as one self-contained HTML file."""
