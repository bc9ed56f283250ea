"""``python -m anvil`` is the ``anvil`` command."""

from anvil.cli import main

if __name__ == "__main__":
    main()
