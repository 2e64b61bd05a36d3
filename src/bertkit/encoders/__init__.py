"""The encoders, one module each: configuration, network, and Hugging Face's names for its weights."""
