"""A repository's context: ``mcp.config.json``, the directories that it names, and how the last run went."""

from __future__ import annotations

from collections.abc import Iterator

from anvil.doctor.examined_project import Place
from anvil.doctor.values import Finding
from anvil.errors import AnvilError
from anvil.settings.files import CONTEXT_NAME, load_context
from anvil.wording import counted


def examine(place: Place) -> Iterator[Finding]:
    """The context of the repository around the working folder, where a file configures it or it was ingested."""
    if place.problem is not None:  # the finding of "configuration"
        return
    config_path = dict(place.given).get("--config")
    try:
        config, root, notes = load_context(None, config_path)
    except AnvilError as error:
        yield Finding("context", "wrong", str(error))
        return
    from anvil.context.run_log import Records

    file, options = root / CONTEXT_NAME, config.context
    records = Records(root / options.index_dir)
    if not file.exists() and not records.index.exists():
        return
    named = place.shown(file) if file.exists() else "The context"
    for note in notes:
        yield Finding("context", "note", note)
    plain = [directory for directory in options.directories if not any(sign in directory for sign in "*?[{")]
    missing = [directory for directory in plain if not (root / directory).is_dir()]
    if len(missing) == len(options.directories):
        text = f"{named} names directories that do not exist: {', '.join(missing)}. Correct 'directories'."
        yield Finding("context", "wrong", text)
        return
    errors = records.state().errors
    if errors:
        first = f"{errors[0].path} ({errors[0].reason})"
        text = f"{counted(len(errors), 'file', 'could')} not be read in the last run, such as {first}."
        yield Finding("context", "note", text, place.at(root, place.anvil("context", "ingest")))
    else:
        count = len(options.directories)
        text = f"{named} is valid; {count - len(missing)} of its {count} directories exist."
        yield Finding("context", "ok", text)
