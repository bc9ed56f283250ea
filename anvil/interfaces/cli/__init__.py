"""The ``anvil`` command line: ``app`` is the program, each command is a module."""
