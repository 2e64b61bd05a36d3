"""A user's own files: what they hold is guessed, and becomes a task."""
