"""This machine: folders of the user, safe writes, child processes, and this installation."""
