"""The jobs of ``anvil ci``, by mode: what each does, when it fails, and what it reports to the runner."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from anvil.build.report import BuildReport, ProgressLines
from anvil.ci import previous_indexes, pull_request, runners, summary
from anvil.ci.runners import MAX_ANNOTATIONS, Note, Runner, in_checkout
from anvil.cli.output import relative
from anvil.errors import BuildError, ConfigError
from anvil.fetch.settings import FetchOptions
from anvil.impact.settings import ImpactOptions
from anvil.index_file.reader import Reader
from anvil.lint.settings import LEVELS, LintOptions
from anvil.lint.settings import Level as FindingLevel
from anvil.requests import OpenRequest
from anvil.settings.schema import INDEX_NAME
from anvil.sites import site_pages
from anvil.system import safe_files
from anvil.values import Changes
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.api import Anvil


@dataclass(frozen=True, slots=True)
class CiOptions(OpenRequest):
    """The options of ``anvil ci``, as its help describes them; None for what the configuration says."""

    previous: tuple[str, ...] = ()
    shard: str | None = None
    keep: str | None = None
    mark_stale: bool = True
    kept_key: str | None = None
    artifact_name: str | None = None
    tests: str | None = None
    fail_level: FindingLevel | None = None
    base: str | None = None
    fail_impact: bool = False
    comment: bool = False
    markdown: Literal["true", "false"] | None = None


def plan(options: CiOptions, runner: Runner) -> tuple[bool, dict[str, str]]:
    """The folder in which to keep the index between runs, and the prefixes of its cache key; and the same for the
    documentation of dependencies."""
    with _opened(options, runner) as opened:
        temporary = Path(os.environ.get("RUNNER_TEMP") or tempfile.gettempdir())
        prefix = previous_indexes.index_key(opened, options.shard)
        branch = pull_request.base_branch() or pull_request.own_branch()
        values = {
            "keep": options.keep or str(temporary / previous_indexes.index_folder(opened, options.shard)),
            "cache-prefix": prefix,
            "cache-branch": prefix + previous_indexes.branch_key(branch),
            **previous_indexes.deps_cache(opened.base, temporary),
        }
    return True, values


def build(options: CiOptions, runner: Runner) -> tuple[bool, dict[str, str]]:
    """Build the index, reuse vectors of the kept one, and write the new index and its manifest into that folder."""
    from anvil.index_file import publish, verify

    with ExitStack() as stack:
        opened = stack.enter_context(_opened(options, runner))
        _name_other_folders(opened, runner)
        kept_index = Path(options.keep, INDEX_NAME) if options.keep else None  # of an earlier run
        kept_index = kept_index if kept_index and kept_index.is_file() else None
        reused = [*([kept_index] if kept_index else []), *previous_indexes.named(options.previous, opened, runner)]
        old_copy = Path(stack.enter_context(tempfile.TemporaryDirectory())) / INDEX_NAME
        base = stack.enter_context(
            previous_indexes.base_index(opened, kept_index, options.kept_key or "", options.shard)
        )
        # in a pull request the branch goes first: its reader asks what the pull request changes, not the last push
        candidates = [*([base] if base else []), opened.index_path, *reused]
        # a copy, since the build may replace it
        old = previous_indexes.first_sound(candidates, options.shard, old_copy)
        if old is not None:
            stack.enter_context(old)
        report = opened.index(previous=reused, shard=options.shard)
        _warn(report, opened, runner)
        if report.nothing_embedded:  # such an index must not be kept for the next run, or published
            raise BuildError(report.nothing_embedded_because)
        _write_site_files(opened, options, runner)
        index = opened.index_path
        new = stack.enter_context(verify.open_checked(index))
        sha256 = safe_files.sha256(index)
        contents = _contents(opened, new, old, base, report=report)
        key = previous_indexes.index_key(opened, options.shard) + previous_indexes.branch_key(pull_request.own_branch())
        is_changed = old is None or safe_files.sha256(old_copy) != sha256
        values = {**_values(opened, contents, report.embedded, is_changed), "cache-key": key + sha256[:16]}
        if options.keep:
            target = Path(options.keep, INDEX_NAME)
            publish.place(index, target)
            publish.write_manifest(target)
    repository, name = os.environ.get("GITHUB_REPOSITORY"), options.artifact_name
    # 'anvil pull' is for a whole index: a shard is fetched by the job that joins them
    artifact = (repository, name) if repository and name and options.shard is None else None
    runner.summarize(summary.render_index(replace(contents, artifact=artifact)))
    return True, values


def check(options: CiOptions, runner: Runner) -> tuple[bool, dict[str, str]]:
    """Compare the index, and the files with the pointer of ``anvil agents``, with the documents; annotate what is
    stale.

    Returns whether all is fresh, and values about the index.
    """
    from anvil.index_file import verify

    with ExitStack() as stack:
        opened = stack.enter_context(_opened(options, runner))
        _name_other_folders(opened, runner)
        changes = opened.check()
        reader = stack.enter_context(verify.open_checked(opened.index_path))
        base = stack.enter_context(previous_indexes.base_index(opened, None, "", options.shard))
        old = stack.enter_context(verify.open_checked(base)) if base else None
        contents = _contents(opened, reader, old, base, stale=changes)
        values = _values(opened, contents, 0, bool(changes))
        if changes:
            way_out = summary.way_out(contents, "'{}'".format)
            runner.show(
                islice(runners.stale_notes(changes, opened, reader), MAX_ANNOTATIONS if options.mark_stale else 0)
            )
            runner.annotate(
                "error",
                f"{relative(opened.index_path)} is stale: {counted(len(changes), 'page', 'differ')} "
                f"from the documents. {way_out}",
            )
        else:
            runner.line(f"{relative(opened.index_path)} is fresh: no page differs from the documents.")
        stale_files = _stale_agent_files(opened, options)
        for message in stale_files:
            runner.annotate("error", message)
    runner.summarize(summary.render_index(contents))
    return not changes and not stale_files, values


def _values(opened: Anvil, contents: summary.Contents, embedded: int, is_changed: bool) -> dict[str, str]:
    """What later steps get to know of an index."""
    return {
        "index-path": str(opened.index_path.absolute()),
        "digest": contents.digest,
        "pages": str(contents.after["documents"]),
        "chunks": str(contents.after["chunks"]),
        "embedded": str(embedded),
        "changed": str(is_changed).lower(),
    }


def _stale_agent_files(opened: Anvil, options: CiOptions) -> tuple[str, ...]:
    """What is wrong with the files that have the pointer of ``anvil agents``, if any."""
    from anvil.agents import cli as agents

    if opened.tree is None:
        return ()
    return agents.agent_files(opened).compare(opened.tree).messages(agents.write_command(options))


def test(options: CiOptions, runner: Runner) -> tuple[bool, dict[str, str]]:
    """Ask the questions of a suite, in a pull request also of the branch that it is for; whether they are answered."""
    with _opened(options, runner) as opened:
        suite = opened.test_suite(None if options.tests in (None, "true") else options.tests)
        branch = pull_request.base_branch()
        base = pull_request.base_commit(opened) if branch else None
        report = opened.test(suite, base)
        if branch and base is None:
            runner.annotate(
                "warning",
                f"The questions are not compared with {branch}: this checkout lacks its commits. "
                f"{pull_request.FETCH_ALL}",
            )
        for sentence in report.notes:
            runner.annotate("warning", sentence)
        runner.show(runners.question_notes(report, opened), MAX_ANNOTATIONS)
        pages_url = _pages_url(opened)
    values = {
        "questions": str(len(report.outcomes)),
        "failed": str(len(report.failed)),
        "lost": str(len(report.comparison.lost) if report.comparison else 0),
    }
    runner.summarize(summary.render_questions(report, branch, pages_url))
    runner.line(summary.questions_headline(report))
    return report.passed, values


def lint(options: CiOptions, runner: Runner) -> tuple[bool, dict[str, str]]:
    """Examine the pages, with annotations at errors and warnings; whether no finding reaches the fail level."""
    with _opened(options, runner) as opened:
        _name_other_folders(opened, runner)
        report = opened.lint(site=options.site)
        failing = report.at_least(options.fail_level or opened.config.table(LintOptions).fail_level)
        runner.show(runners.lint_notes(report.at_least("warning"), opened), MAX_ANNOTATIONS)
        pages_url = _pages_url(opened)
    values = {level + "s": str(sum(each.level == level for each in report.findings)) for level in LEVELS}
    runner.summarize(summary.render_lint(report, pages_url))
    runner.line(summary.lint_headline(report))
    return not failing, values


def impact(options: CiOptions, runner: Runner) -> tuple[bool, dict[str, str]]:
    """Name the sections that the change of a pull request probably makes wrong, in annotations and the summary; quiet
    where there are none. Whether that is so, or does not matter."""
    from anvil.impact import change
    from anvil.impact.assessment import assess

    with _opened(replace(options, build_first=False), runner) as opened:  # words are enough, without an index
        base = options.base
        if base is None and pull_request.base_branch() is not None:
            base = pull_request.base_commit(opened)
            if base is None:
                runner.annotate(
                    "warning",
                    "What the change means for the documentation is not examined: this checkout lacks the commits of "
                    f"{pull_request.base_branch()}. {pull_request.FETCH_ALL}",
                )
        if base is None:
            if pull_request.base_branch() is None:
                runner.line("There is no pull request to examine. Name a commit with --base.")
            return True, {"impact": "0"}
        chosen = change.from_git(opened.folder or Path.cwd(), base, False)
        title, _ = pull_request.described()
        report = assess(chosen.diff, opened, title=title or chosen.title, before=chosen.before)
        likely = report.at_least(opened.config.table(ImpactOptions).min_confidence)
        runner.show(runners.impact_notes(likely, report.undocumented, opened), MAX_ANNOTATIONS)
        pages_url = _pages_url(opened)
    for sentence in report.notes:
        runner.line(sentence)
    values = {"impact": str(len(likely))}
    if section := summary.render_impact(likely, report, pages_url):
        runner.summarize(section)
    if options.comment:
        pull_request.keep_current(section if likely else "", runner)
    headline = summary.impact_headline(likely, report)
    runner.line(
        f"{headline} ({counted(report.files, 'changed file')} of code)." if report.files else "No code changed."
    )
    return not (likely and options.fail_impact), values


def deps(options: CiOptions, runner: Runner) -> tuple[bool, dict[str, str]]:
    """Fetch or build the documentation that ``anvil.lock`` names, with an error for each entry that fails.

    The folder that is kept between runs gets what the lock names, and nothing else. It is a copy, because the cache of
    the machine's user may serve several jobs and projects. If something fails, the folder stays as it is.

    Returns whether all of it is there, and numbers. Raises :class:`ConfigError` without ``anvil.lock``.
    """
    from anvil.dependencies import anvil_lock_changes, docs_cache
    from anvil.settings.configuration import load_config
    from anvil.settings.schema import LOCK_NAME

    config, base = load_config(options.config)
    entries, cache = anvil_lock_changes.read_entries(base), docs_cache.cache()
    kept_docs = docs_cache.kept(Path(options.keep)) if options.keep else None
    if kept_docs is not None:
        docs_cache.copy(kept_docs, cache, entries, config.table(FetchOptions), base)
    reports = anvil_lock_changes.sync(config, base, cache, _progress(runner))
    is_complete = all(report.problem is None for report in reports)
    if kept_docs is not None and is_complete:
        docs_cache.copy(cache, kept_docs, entries, config.table(FetchOptions), base)
        docs_cache.keep_only(kept_docs, entries, config.table(FetchOptions), base)
    for report in reports:
        if report.problem is not None:
            runner.annotate("error", report.problem, relative(base / LOCK_NAME))
    values = {
        "dependencies": str(len(reports)),
        "dependencies-fetched": str(sum(report.outcome == "fetched" for report in reports)),
    }
    runner.summarize(summary.dependencies(reports))
    return is_complete, values


# --- inputs ----------------------------------------------------------------------------------------------------


def _progress(runner: Runner) -> ProgressLines:
    return ProgressLines(runner.line, first_s=2.0, interval_s=10.0)


def _opened(options: CiOptions, runner: Runner) -> Anvil:
    from anvil.api import open_index

    off = {"site.markdown": False, "site.link_markdown": False}
    keys = off if options.markdown == "false" else {"site.markdown": True} if options.markdown else {}
    return open_index(replace(options, keys=keys, progress=_progress(runner)))


def _name_other_folders(opened: Anvil, runner: Runner) -> None:
    """Warn where the project has other collections with a folder: a job that is green says nothing about them."""
    if opened.other_folders:
        others = ", ".join(opened.other_folders)
        runner.annotate(
            "warning",
            f"This step is for {relative(str(opened.folder))} alone. The project has other collections: add a step for "
            f"each folder, with the input docs or --docs: {others}.",
        )


# --- reports ---------------------------------------------------------------------------------------------------


def _contents(
    opened: Anvil,
    reader: Reader,
    old: Reader | None,
    base: Path | None,
    report: BuildReport | None = None,
    stale: Changes | None = None,
) -> summary.Contents:
    """What the summary says of an index, and of what it has since ``old``: that of the ``base`` branch or, without one,
    of the last run."""
    from anvil.git_drivers import index_diff

    meta, site = reader.meta(), opened.config.site.folder
    return summary.Contents(
        index=relative(opened.index_path),
        docs=relative(opened.folder) if opened.folder else "",
        digest=meta["digest"],
        commit=meta.get("commit"),
        of_site=reader.excluded_hashes() is not None,
        site_folder=None if site is None else relative(opened.base / site),
        pages_url=_pages_url(opened),
        after=_counts(reader),
        before=_counts(old) if old else None,
        difference=index_diff.difference(old, reader) if old else None,
        since=pull_request.base_branch() if base else None,
        pending=reader.lacking_vectors(),
        report=report,
        stale=stale,
    )


def _pages_url(opened: Anvil) -> str | None:
    """The address of the pages' folder in this commit on GitHub; None elsewhere."""
    server, repository, commit = (os.environ.get(f"GITHUB_{name}") for name in ("SERVER_URL", "REPOSITORY", "SHA"))
    folder = in_checkout(opened, "")
    if not (server and repository and commit) or folder is None:
        return None
    below = "" if folder == "." else f"{quote(folder, errors='surrogateescape')}/"
    return f"{server}/{repository}/blob/{commit}/{below}"


def _counts(reader: Reader) -> dict[str, int]:
    return {**reader.counts(), "bytes": os.path.getsize(reader.connection.filename)}


def _write_site_files(opened: Anvil, options: CiOptions, runner: Runner) -> None:
    """Write what the configuration wants besides the index of a site. A shard has no search page."""
    from anvil.api import publish_site_files

    if opened.config.site.folder is None and options.markdown != "true":
        return
    if options.shard is None:
        notes, lines = publish_site_files(opened)
        for note in notes:
            runner.annotate("warning", note)
        for line in lines:
            runner.line(line)
    elif opened.config.site.writes_markdown:
        raise ConfigError("The Markdown of a site is written from all of its pages, and a shard has some.")


def _warn(report: BuildReport, opened: Anvil, runner: Runner) -> None:
    notes = [Note("warning", reason) for reason in report.reasons]
    if opened.config.site.folder is None:
        notes += [Note("warning", f"Skipped: {each.reason}", in_checkout(opened, each.path)) for each in report.skipped]
    else:
        for line in site_pages.left_out(report.skipped):
            runner.line(line)
    for failure in report.failed:
        notes.append(Note("warning", f"Not embedded, found by keyword only: {failure.path}: {failure.reason}"))
    runner.show(notes, MAX_ANNOTATIONS)


MODES: Mapping[str, Callable[[CiOptions, Runner], tuple[bool, dict[str, str]]]] = {
    "build": build,
    "check": check,
    "lint": lint,
    "test": test,
    "impact": impact,
    "deps": deps,
    "plan": plan,
}
"""Mode of ``anvil ci`` -> what it runs: whether all is well, and values for later steps."""
