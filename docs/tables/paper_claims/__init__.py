"""Claims of five papers as data: where they stand, what was computed about them, and the status that follows."""
