"""The files of labelled examples: which files, which columns, what the cells mean."""
