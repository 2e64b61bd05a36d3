"""The tasks that ``finetuning_quality.py`` compares, a file for each shape, and the loop they share."""
