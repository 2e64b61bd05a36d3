"""The tables of the paper, every system trained on one corpus by one loop."""
