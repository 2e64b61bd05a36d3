"""The tasks that ``finetuning_quality.py`` compares, one file per kind of task, and the loop they share."""
