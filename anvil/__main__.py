"""``python -m anvil`` is the ``anvil`` command."""

from anvil.cli.program import main

if __name__ == "__main__":
    main()
