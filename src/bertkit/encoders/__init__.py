"""The networks, one file each: config, module and table of foreign names."""
