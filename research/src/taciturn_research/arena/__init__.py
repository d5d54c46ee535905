"""The arena: every method on every data set at equal budgets."""
