"""From a model and examples to predictions."""
