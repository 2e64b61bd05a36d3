"""Hyper-parameter search: a grid or sampled trials; each point is an ordinary fine-tuning run."""
