"""This machine: folders of the user, safe reads and writes of files, child processes, and this installation."""
