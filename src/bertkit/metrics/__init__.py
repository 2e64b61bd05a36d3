"""Official scores as pure functions on lists."""
