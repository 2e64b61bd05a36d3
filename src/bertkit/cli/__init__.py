"""The verbs as commands: parse, call, print."""
