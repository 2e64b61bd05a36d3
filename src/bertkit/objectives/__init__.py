"""Training objectives, one module each: label builder, head and loss."""
