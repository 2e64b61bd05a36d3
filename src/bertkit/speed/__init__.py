"""The speed of bertkit on this machine, beside other libraries."""
