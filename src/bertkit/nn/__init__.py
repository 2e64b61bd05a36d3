"""The bricks that encoders are built of. They take plain numbers and know no config."""
