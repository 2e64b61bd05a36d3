"""Named tasks, one module per benchmark: ``glue:sst2`` is the value ``sst2`` of ``glue.py``."""
