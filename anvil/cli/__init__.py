"""The ``anvil`` command line: the program, the options and output of all commands, and the commands of the engine."""
