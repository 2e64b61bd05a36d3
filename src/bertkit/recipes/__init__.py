"""Functions that return a whole experiment, one file a family."""
