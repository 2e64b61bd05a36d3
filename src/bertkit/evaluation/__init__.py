"""Scores of fine-tuned models, with intervals, comparisons and reports."""
