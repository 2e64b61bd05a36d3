"""The version of bertkit; the newest heading of CHANGELOG.md is compared with it."""

__version__ = "0.2.0"
