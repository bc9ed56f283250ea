"""What a desktop client starts: ``anvil serve`` over what its user chose in the client's settings."""

import os
import sys

from anvil.cli.program import main


def chosen(arguments: list[str]) -> dict[str, str]:
    """``--name=value`` arguments by name. What was left empty comes as nothing, or as the placeholder itself."""
    pairs = (argument.removeprefix("--").partition("=") for argument in arguments)
    return {name: value for name, _, value in pairs if value and not value.startswith("${")}


if __name__ == "__main__":
    given = chosen(sys.argv[1:])
    if not given:
        sys.exit("Choose a documentation folder, or name a published index, in the settings of this extension.")
    if "docs" in given and os.path.isdir(given["docs"]):
        os.chdir(given["docs"])  # an anvil.toml there, or above it, is the one that is meant
    main(["serve", "--text", "markdown", *(part for name in given for part in (f"--{name}", given[name]))])
