"""The tasks, one file a family; users name the values in them."""
