"""Frank-Wolfe with private screening of features."""
