"""Pre-training from start to finish."""
