"""What encoders share: base networks, configuration checks, what a module states about its encoder, and look-ups."""
