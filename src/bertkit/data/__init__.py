"""From files to batches: sources, shards, preparation, order and collation."""
