"""Official scores as pure functions of lists."""
