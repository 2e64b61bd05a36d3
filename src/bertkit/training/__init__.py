"""The loop and its parts: optimizer, schedule, precision."""
