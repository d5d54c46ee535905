"""Private Frank-Wolfe, and the sparsifier on top of it."""
