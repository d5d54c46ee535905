"""taciturn."""
