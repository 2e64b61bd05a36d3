"""Fine-tuning from start to finish."""
