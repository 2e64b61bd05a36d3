"""Neural-network layers that encoders are built from. They take plain numbers and ready-made parts, never a config."""
