"""File formats: open, decompress, decode; lines, JSON Lines, CSV, TSV, Parquet and Arrow."""
