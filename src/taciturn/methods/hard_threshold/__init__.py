"""Private hard thresholding."""
