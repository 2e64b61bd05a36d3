"""The questions put to an encoder, one file each: label maker, head and loss."""
