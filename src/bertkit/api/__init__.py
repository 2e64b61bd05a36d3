"""The verbs as Python functions: the same names and arguments as on the command line."""

from bertkit.api.verbs import *  # noqa: F403
