"""The jobs of ``anvil ci``, one for each mode: build, check, lint, test, impact, deps and plan."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from anvil.build.report import BuildReport, ProgressLines
from anvil.ci import previous_indexes, pull_request_comment, runners, summary
from anvil.ci.runners import MAX_ANNOTATIONS, Note, Runner, checkout_path
from anvil.cli.options import build_command
from anvil.cli.output import relative
from anvil.documents.git_tree import CommitTree
from anvil.errors import AnvilError, BuildError, ConfigError
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
    """The options of ``anvil ci``, which its help describes. None stands for the value of the configuration."""

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
    """The folders in which the index and the documentation of dependencies are kept between runs, and their keys."""
    with _open(options, runner) as opened:
        temporary = Path(os.environ.get("RUNNER_TEMP") or tempfile.gettempdir())
        prefix = previous_indexes.index_key(opened, options.shard)
        branch = runners.base_branch() or runners.own_branch()
        values = {
            "keep": options.keep or str(temporary / previous_indexes.index_folder(opened, options.shard)),
            "cache-prefix": prefix,
            "cache-branch": prefix + previous_indexes.branch_key(branch),
            **previous_indexes.deps_cache(opened.base, temporary),
        }
    return True, values


def build(options: CiOptions, runner: Runner) -> tuple[bool, dict[str, str]]:
    """Build the index with the vectors of earlier indexes. Write it, with its manifest, into the folder of ``keep``."""
    from anvil.index_file import publish, verify

    with ExitStack() as stack:
        opened = stack.enter_context(_open(options, runner))
        _warn_of_other_folders(opened, runner)
        kept_index = Path(options.keep, INDEX_NAME) if options.keep else None  # of an earlier run
        kept_index = kept_index if kept_index and kept_index.is_file() else None
        reused = [*([kept_index] if kept_index else []), *previous_indexes.find(options.previous, opened, runner)]
        old_copy = Path(stack.enter_context(tempfile.TemporaryDirectory())) / INDEX_NAME
        base = stack.enter_context(
            previous_indexes.base_index(opened, kept_index, options.kept_key or "", options.shard)
        )
        # The base branch goes first: the summary of a pull request shows its whole change, not that of the last push.
        candidates = [*([base] if base else []), opened.index_path, *reused]
        # The build may replace the file, so the old index is read from a copy.
        old = previous_indexes.open_first_valid(candidates, options.shard, old_copy)
        if old is not None:
            stack.enter_context(old)
        report = opened.index(previous=reused, shard=options.shard)
        _report_build(report, opened, runner)
        if report.nothing_embedded:  # an index without vectors must not be kept for the next run, or published
            raise BuildError(report.nothing_embedded_because)
        _write_site_files(opened, options, runner)
        index = opened.index_path
        new = stack.enter_context(verify.open_checked(index))
        sha256 = safe_files.sha256(index)
        contents = _summary_contents(opened, new, old, base, report=report)
        key = previous_indexes.index_key(opened, options.shard) + previous_indexes.branch_key(runners.own_branch())
        is_changed = old is None or safe_files.sha256(old_copy) != sha256
        values = {**_index_values(opened, contents, report.embedded, is_changed), "cache-key": key + sha256[:16]}
        if options.keep:
            target = Path(options.keep, INDEX_NAME)
            publish.place(index, target)
            publish.write_manifest(target)
    repository, name = os.environ.get("GITHUB_REPOSITORY"), options.artifact_name
    # The summary shows 'anvil pull' for a whole index. A shard is fetched by the job that joins the shards.
    artifact = (repository, name) if repository and name and options.shard is None else None
    runner.summarize(summary.render_index(replace(contents, artifact=artifact)))
    return True, values


def check(options: CiOptions, runner: Runner) -> tuple[bool, dict[str, str]]:
    """Compare the index with the documents, and annotate stale pages. Check the files of ``anvil agents``, too.

    Returns whether all is fresh, and values about the index.
    """
    from anvil.index_file import verify

    with ExitStack() as stack:
        opened = stack.enter_context(_open(options, runner))
        _warn_of_other_folders(opened, runner)
        changes = opened.check()
        reader = stack.enter_context(verify.open_checked(opened.index_path))
        base = stack.enter_context(previous_indexes.base_index(opened, None, "", options.shard))
        old = stack.enter_context(verify.open_checked(base)) if base else None
        contents = _summary_contents(opened, reader, old, base, stale=changes)
        values = _index_values(opened, contents, 0, bool(changes))
        if changes:
            advice = summary.update_advice(contents, "'{}'".format)
            runner.show(
                islice(runners.stale_notes(changes, opened, reader), MAX_ANNOTATIONS if options.mark_stale else 0)
            )
            runner.annotate(
                "error",
                f"{relative(opened.index_path)} is stale: {counted(len(changes), 'page', 'differ')} "
                f"from the documents. {advice}",
            )
        else:
            runner.line(f"{relative(opened.index_path)} is fresh: no page differs from the documents.")
        stale_files = _stale_agent_files(opened, options)
        for message in stale_files:
            runner.annotate("error", message)
    runner.summarize(summary.render_index(contents))
    return not changes and not stale_files, values


def _index_values(opened: Anvil, contents: summary.Contents, embedded: int, is_changed: bool) -> dict[str, str]:
    """The values about an index for later steps."""
    return {
        "index-path": str(opened.index_path.absolute()),
        "digest": contents.digest,
        "pages": str(contents.after["documents"]),
        "chunks": str(contents.after["chunks"]),
        "embedded": str(embedded),
        "changed": str(is_changed).lower(),
    }


def _stale_agent_files(opened: Anvil, options: CiOptions) -> tuple[str, ...]:
    """A message for each file whose pointer of ``anvil agents`` is not up to date."""
    from anvil.agents import cli as agents

    if opened.tree is None:
        return ()
    return agents.agent_files(opened).compare(opened.tree).messages(agents.write_command(options))


def test(options: CiOptions, runner: Runner) -> tuple[bool, dict[str, str]]:
    """Ask the questions of a suite. In a pull request, compare the answers with those of the base branch.

    Returns whether the suite passed, and the numbers of questions.
    """
    with _open(options, runner) as opened:
        suite = opened.test_suite(None if options.tests in (None, "true") else options.tests)
        branch = runners.base_branch()
        base = runners.base_commit(opened, partial(runner.annotate, "warning")) if branch else None
        report = opened.test(suite, base)
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
    """Lint the pages, and annotate errors and warnings. In a pull request, findings that it adds come first.

    Returns whether no finding reaches the fail level, and the number of findings of each level.
    """
    with _open(options, runner) as opened:
        _warn_of_other_folders(opened, runner)
        report = opened.lint(site=options.site)
        base = runners.base_commit(opened, runner.line) if runners.base_branch() else None
        if base is not None and opened.folder is not None:
            key = attrgetter("path", "rule", "message")
            with suppress(AnvilError):  # such as a base branch without this folder
                old = set(map(key, opened.lint(CommitTree(opened.folder, base, opened.config.source)).findings))
                report = replace(report, findings=tuple(sorted(report.findings, key=lambda each: key(each) in old)))
        failing = report.at_least(options.fail_level or opened.config.table(LintOptions).fail_level)
        runner.show(runners.lint_notes(report.at_least("warning"), opened), MAX_ANNOTATIONS)
        pages_url = _pages_url(opened)
    values = {level + "s": str(sum(each.level == level for each in report.findings)) for level in LEVELS}
    runner.summarize(summary.render_lint(report, pages_url))
    runner.line(summary.lint_headline(report))
    return not failing, values


def impact(options: CiOptions, runner: Runner) -> tuple[bool, dict[str, str]]:
    """Name the sections that the change of a pull request probably makes wrong, in annotations and the summary.

    Returns False if there are any and ``fail_impact`` is set, and their number. Without any, the summary stays empty.
    """
    from anvil.impact import change
    from anvil.impact.assessment import assess

    with _open(replace(options, build_first=False), runner) as opened:  # without an index, keywords are enough
        base, branch = options.base, runners.base_branch()
        if base is None and branch is not None:
            base = runners.base_commit(opened, partial(runner.annotate, "warning"))
        elif base is None:
            runner.line("There is no pull request to examine. Name a commit with --base.")
        if base is None:
            return True, {"impact": "0"}
        diff = change.from_git(opened.folder or Path.cwd(), base, False)
        title = runners.pull_request().title or diff.title
        report = assess(diff.diff, opened, title=title, before=diff.before)
        likely = report.at_least(opened.config.table(ImpactOptions).min_confidence)
        runner.show(runners.impact_notes(likely, report.undocumented, opened), MAX_ANNOTATIONS)
        pages_url = _pages_url(opened)
    for sentence in report.notes:
        runner.line(sentence)
    values = {"impact": str(len(likely))}
    if section := summary.render_impact(likely, report, pages_url):
        runner.summarize(section)
    if options.comment:
        pull_request_comment.update(section if likely else "", runner)
    headline = summary.impact_headline(likely, report)
    files = f"({counted(report.files, 'changed file')} of code)"
    runner.line(f"{headline} {files}." if report.files else f"No code changed in {diff.name}.")
    return not (likely and options.fail_impact), values


def deps(options: CiOptions, runner: Runner) -> tuple[bool, dict[str, str]]:
    """Fetch or build the documentation that ``anvil.lock`` names, with an error for each entry that fails.

    The folder of ``keep`` gets a copy of the documentation that the lock names, and nothing else. It is a copy, because
    several jobs and projects may share the user's cache. If an entry fails, nothing is copied to the folder.

    Returns whether the documentation is complete, and numbers. Raises :class:`ConfigError` without an ``anvil.lock``.
    """
    from anvil.dependencies import anvil_lock_changes, docs_cache
    from anvil.settings.configuration import load_config
    from anvil.settings.schema import LOCK_NAME

    config, base = load_config(options.config)
    entries, cache = anvil_lock_changes.read_entries(base), docs_cache.cache()
    kept_docs = docs_cache.cache_to_keep(Path(options.keep)) if options.keep else None
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


# --- the project -----------------------------------------------------------------------------------------------


def _progress(runner: Runner) -> ProgressLines:
    return ProgressLines(runner.line, first_s=2.0, interval_s=10.0)


def _open(options: CiOptions, runner: Runner) -> Anvil:
    from anvil.api import open_index

    off = {"site.markdown": False, "site.link_markdown": False}
    keys = off if options.markdown == "false" else {"site.markdown": True} if options.markdown else {}
    return open_index(replace(options, keys=keys, progress=_progress(runner)))


def _warn_of_other_folders(opened: Anvil, runner: Runner) -> None:
    """Warn if the project has other collections with a folder, which this job does not examine."""
    if opened.other_folders:
        others = ", ".join(opened.other_folders)
        runner.annotate(
            "warning",
            f"This step is for {relative(str(opened.folder))} alone. The project has other collections: add a step for "
            f"each folder, with the input docs or --docs: {others}.",
        )


# --- reports ---------------------------------------------------------------------------------------------------


def _summary_contents(
    opened: Anvil,
    reader: Reader,
    old: Reader | None,
    base: Path | None,
    report: BuildReport | None = None,
    stale: Changes | None = None,
) -> summary.Contents:
    """The contents of the summary of an index. ``old`` is the index that it is compared with.

    ``base`` is the index of the base branch. Without one, ``old`` is the index of the last run.
    """
    from anvil.git_drivers import index_diff

    meta, site = reader.meta(), opened.config.site.folder
    return summary.Contents(
        index=relative(opened.index_path),
        docs=relative(opened.folder) if opened.folder else "",
        digest=meta["digest"],
        commit=meta.get("commit"),
        of_site=reader.excluded_hashes() is not None,
        has_site_folder=site is not None,
        build=build_command(opened.only.request, site=None if site is None else relative(opened.base / site)),
        pages_url=_pages_url(opened),
        after=_counts(reader),
        before=_counts(old) if old else None,
        difference=index_diff.difference(old, reader) if old else None,
        since=runners.base_branch() if base else None,
        pending=reader.lacking_vectors(),
        report=report,
        stale=stale,
    )


def _pages_url(opened: Anvil) -> str | None:
    """The address of the documentation folder in this commit on GitHub, with a slash at its end; None elsewhere."""
    server, repository, commit = (os.environ.get(f"GITHUB_{name}") for name in ("SERVER_URL", "REPOSITORY", "SHA"))
    folder = checkout_path(opened, "")
    if not (server and repository and commit) or folder is None:
        return None
    subfolder = "" if folder == "." else f"{quote(folder, errors='surrogateescape')}/"
    return f"{server}/{repository}/blob/{commit}/{subfolder}"


def _counts(reader: Reader) -> dict[str, int]:
    return {**reader.counts(), "bytes": os.path.getsize(reader.connection.filename)}


def _write_site_files(opened: Anvil, options: CiOptions, runner: Runner) -> None:
    """Write the Markdown and the search page of a site, as the configuration says. A shard has no search page."""
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


def _report_build(report: BuildReport, opened: Anvil, runner: Runner) -> None:
    """Report pages that were skipped or not embedded."""
    notes = [Note("warning", reason) for reason in report.reasons]
    if opened.config.site.folder is None:
        notes += [
            Note("warning", f"Skipped: {page.reason}", checkout_path(opened, page.path)) for page in report.skipped
        ]
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
"""Mode of ``anvil ci`` -> its function, which returns whether the job passes, and the values for later steps."""
