"""The command line: parse, look up, call."""
