"""Files that survive crashes: atomic writes, locks and checksums."""
