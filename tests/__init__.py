"""The tests of Anvil and of the plugin for MkDocs."""

import os

# hypothesis imports the packages that extend it, such as trio, which takes a third of its own import.
os.environ.setdefault("HYPOTHESIS_NO_PLUGINS", "1")
