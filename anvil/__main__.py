"""``python -m anvil`` is the ``anvil`` command."""

from anvil.interfaces.cli.app import main

if __name__ == "__main__":
    main()
