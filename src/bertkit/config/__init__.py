"""Records as plain values, and settings that change their fields."""
