"""The verbs as Python functions: the same names and options as on the command line.

What a command shows, its function returns. Paths may be text. Mistakes raise BertkitError with one line. Users find the
functions in ``bertkit`` itself, whose ``__init__.pyi`` names them.
"""
