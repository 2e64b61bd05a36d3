"""From raw text to a fine-tuned model without any input."""
