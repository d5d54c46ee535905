"""Methods: one folder each, with a plan that sees no data, a run, and an estimator."""
