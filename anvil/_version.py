"""The version of the package, alone: it is read where nothing else of the package is needed."""

__version__ = "0.1.0"
