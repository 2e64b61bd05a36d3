"""Compiled passes and products for CPUs: the C files, the module that compiles them, and those that call them."""
