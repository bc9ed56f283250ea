"""Sphinx extension: after an HTML build, the site contains the index of its pages.

``extensions = ["anvil.sphinx"]`` in ``conf.py`` does what ``anvil build --site`` does, at the end of the builders
``html`` and ``dirhtml``. The pages are read from the HTML that Sphinx wrote, so parallel and incremental builds work.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sphinx.errors import ExtensionError
from sphinx.util import logging

from anvil._version import __version__
from anvil.build.report import BuildReport, ProgressLines
from anvil.errors import AnvilError
from anvil.formats.characters import log_line
from anvil.system import safe_files
from anvil.wording import counted

if TYPE_CHECKING:
    from sphinx.application import Sphinx

log = logging.getLogger(__name__)

BUILDERS = ("html", "dirhtml")
PRIORITY = 900
"""Later than other extensions, which may write pages and a sitemap when the build has finished."""
ON_ERROR = ("warn", "fail")


class Option(NamedTuple):
    """A value of ``conf.py``: its default, its types, and a text for the reference."""

    default: Any
    types: tuple[type, ...]
    text: str


OPTIONS = {
    "anvil_enabled": Option(True, (bool,), "Whether the index is built."),
    "anvil_provider": Option(
        None,
        (str, type(None)),
        "The embedding provider, as `embedding.provider` names it. Without it, the one of `anvil.toml`.",
    ),
    "anvil_previous": Option(
        [], (list, tuple), "Earlier indexes, as files. Their vectors are reused for text that did not change."
    ),
    "anvil_skill": Option(
        False,
        (bool,),
        "Whether an Agent Skill of the pages is published with the site, as `.well-known/agent-skills/index.json` and "
        "the `SKILL.md` that it names.",
    ),
    "anvil_markdown": Option(
        False,
        (bool,),
        "Whether each page is also written as Markdown beside its HTML, with `llms.txt` and `llms-full.txt`.",
    ),
    "anvil_link_markdown": Option(
        False, (bool,), "Whether that is done, and the head of each HTML page has a link to its Markdown."
    ),
    "anvil_search_page": Option(
        False,
        (bool,),
        "Whether the site also gets a page that searches the index in the browser, and the script of a search box.",
    ),
    "anvil_on_error": Option(
        "warn",
        (str,),
        "What happens when the index cannot be built: `warn`, which `sphinx-build -W` makes a failure, or `fail`.",
    ),
}


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the options and the build of the index."""
    for name, option in OPTIONS.items():
        app.add_config_value(name, option.default, "", option.types)
    app.connect("build-finished", build_index, priority=PRIORITY)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}


def build_index(app: Sphinx, exception: Exception | None) -> None:
    """Put the index into the finished site. A failed build and other builders get none."""
    if exception is not None or app.builder.name not in BUILDERS or not app.config.anvil_enabled:
        return
    if app.config.anvil_on_error not in ON_ERROR:
        raise ExtensionError(f"anvil_on_error is {app.config.anvil_on_error!r}. Write 'warn' or 'fail'.")
    try:
        report = _built(app)
    except AnvilError as error:
        _complain(app, f"The site has no index: {error}")
    except Exception as error:  # a defect must not make the build of the site fail
        log.debug("The index could not be built.", exc_info=True)
        _complain(app, f"The site has no index, because of an error in Anvil ({type(error).__name__}: {error}).")
    else:
        _report(app, report)


def _built(app: Sphinx) -> BuildReport:
    from anvil import api
    from anvil.requests import OpenRequest
    from anvil.settings.configuration import nearest_config

    chosen, file = app.config, nearest_config(Path(app.confdir))
    request = OpenRequest(
        docs=str(app.srcdir),
        provider=chosen.anvil_provider,
        config=None if file is None else str(file),
        site=str(app.outdir),
        site_url=chosen.html_baseurl or None,
        progress=ProgressLines(_info),
        # None: as in anvil.toml
        keys={f"site.{key}": chosen[f"anvil_{key}"] or None for key in ("markdown", "link_markdown", "search_page")},
    )
    with api.open_index(request) as opened:
        report = opened.index(previous=[Path(app.confdir, path) for path in chosen.anvil_previous])
        if chosen.anvil_skill:
            opened.publish_skill(app.outdir, chosen.project)
        notes, lines = api.publish_site_files(opened, chosen.project, chosen.version or None)
        for note in notes:
            _warn(note, "markdown")
        for line in lines:
            _info(line)
        return report


def _report(app: Sphinx, report: BuildReport) -> None:
    for reason in report.reasons:
        _info(reason)
    builder: Any = app.builder
    own = {os.path.relpath(builder.get_outfilename(name), app.outdir) for name in app.env.found_docs}
    for skipped in report.skipped:
        tell = _info if skipped.path.replace("/", os.sep) in own else _verbose  # not of the search page and its like
        tell(f"{skipped.path} is not in the index: {skipped.reason}")
    for failed in report.failed:
        _warn(f"{failed.path} has no vector: {failed.reason}", "vector")
    if report.nothing_embedded:
        _complain(app, report.nothing_embedded_because)
    done = "unchanged" if report.outcome == "unchanged" else f"{counted(report.embedded, 'passage')} embedded"
    _info(f"{counted(report.pages, 'page')}, {done}: {safe_files.from_working_folder(report.index_path)}")


def _complain(app: Sphinx, message: str) -> None:
    if app.config.anvil_on_error == "fail":
        raise ExtensionError(f"anvil: {log_line(message)}")
    _warn(message, "index")


def _warn(message: str, subtype: str) -> None:
    log.warning("anvil: %s", log_line(message), type="anvil", subtype=subtype)


def _verbose(message: str) -> None:
    log.verbose("anvil: %s", log_line(message))


def _info(message: str) -> None:
    log.info("anvil: %s", log_line(message))
