"""The options of every verb: one documented record per verb, the source of all that a user sees of them.

The docstring of a record says what its verb does, and the text under a field what that option means. The Python
functions (``api``), the command line (``cli``), ``help(bertkit.finetune)`` and the pages of ``docs/reference`` are made
from them. Neither PyTorch nor anything as slow is imported here, so that ``bertkit finetune --help`` does not wait.
"""
