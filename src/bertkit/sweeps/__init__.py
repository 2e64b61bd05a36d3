"""Hyper-parameter search: a grid or drawn trials, each point an ordinary fine-tuning run."""
