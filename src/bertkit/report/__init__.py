"""What a person reads: progress, tables and pictures."""
