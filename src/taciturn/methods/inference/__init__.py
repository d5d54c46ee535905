"""Standard errors, confidence intervals and p-values."""
