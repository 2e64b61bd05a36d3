"""Files that survive crashes: atomic writes, locks and checksums; and processes that may die while they write them."""
