"""The typed configuration: layers, spellings, and errors that name the key, the place and the way out."""

from __future__ import annotations

import dataclasses
import math
import re
import subprocess
import sys
import typing
from collections.abc import Iterator
from typing import Any

import pytest

from anvil import registry
from anvil.errors import ConfigError
from anvil.settings.configuration import configure, of_collection
from anvil.settings.schema import (
    Collection,
    Config,
)


def refusal(*layers: Any, origin: str = "anvil.toml") -> str:
    with pytest.raises(ConfigError) as error:
        configure(*layers, origin=origin)
    return str(error.value)


def test_nothing_said_gives_the_defaults() -> None:
    assert configure() == configure({}, {}, {}) == Config()


def test_each_layer_goes_over_the_one_before() -> None:
    file = {"docs": "file", "index": "file.db", "chunking": {"max_chunk_size": 1000}, "search": {"threshold": 0.1}}
    environment = {"ANVIL_DOCS": "environment", "ANVIL_INDEX": "environment.db", "ANVIL_SEARCH_THRESHOLD": "0.2"}
    flags = {"docs": "flag", "embedding.provider": "none"}
    assert configure().docs == "docs"
    assert configure(file).docs == "file"
    assert configure(file, environment).docs == "environment"
    found = configure(file, environment, flags)
    assert (found.docs, found.index, found.embedding.provider) == ("flag", "environment.db", "none")
    assert (found.chunking.max_chunk_size, found.chunking.min_chunk_size) == (1000, 200)
    assert found.search.threshold == 0.2


def test_a_flag_that_was_not_given_says_nothing() -> None:
    assert configure({"docs": "file"}, {}, {"docs": None, "index": None}).docs == "file"


@pytest.mark.parametrize("key", ["max_chunk_size", "max-chunk-size", "maxChunkSize", "MaxChunkSize"])
def test_keys_may_be_written_in_any_usual_way(key: str) -> None:
    assert configure({"chunking": {key: 700}}).chunking.max_chunk_size == 700


def test_every_key_can_come_from_the_environment() -> None:
    found = configure(
        environment={
            "ANVIL_SOURCE_INCLUDE": "a/*.md, b/*.{md,mdx},",
            "ANVIL_SOURCE_MAX_FILE_BYTES": "10",
            "ANVIL_CHUNKING_MERGE_SHORT_SECTIONS": "off",
            "ANVIL_CHUNKING_SLUGS": "mkdocs",
            "ANVIL_EMBEDDING_API_KEY": "k",
            "ANVIL_EMBEDDING_DIMENSIONS": "256",
            "ANVIL_SEARCH_THRESHOLD": ".5",
        }
    )
    assert found.source.include == ("a/*.md", "b/*.{md,mdx}") and found.source.max_file_bytes == 10
    assert found.chunking.merge_short_sections is False and found.chunking.slugs == "mkdocs"
    assert (found.embedding.api_key, found.embedding.dimensions) == ("k", 256) and found.search.threshold == 0.5


def test_a_variable_of_another_program_is_none_of_ours() -> None:
    assert configure(environment={"ANVIL_UNHEARD_OF": "x", "PATH": "y"}) == Config()


@pytest.mark.parametrize(
    ("table", "key", "near"),
    [
        ({"dosc": "x"}, "'dosc'", "docs"),
        ({"chunking": {"maxChunkSise": 1}}, "'chunking.maxChunkSise'", "chunking.max_chunk_size"),
        ({"embeddings": {}}, "'embeddings'", "embedding"),
        ({"search": {"treshold": 1}}, "'search.treshold'", "search.threshold"),
    ],
)
def test_an_unknown_key_names_itself_its_file_and_the_nearest(table: dict[str, object], key: str, near: str) -> None:
    assert refusal(table) == f"Unknown key {key} in anvil.toml. Did you mean {near}?"


def test_a_key_like_no_other_lists_those_there_are() -> None:
    message = refusal({"search": {"zzz": 1}})
    assert refusal({"context": {"types": {"research": []}}}).endswith(
        "Known keys: template, checklist, spec, plan, tasks, decision."
    )
    assert message == "Unknown key 'search.zzz' in anvil.toml. Known keys: threshold, min_confidence, weights."


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"docs": 3}, "docs in anvil.toml must be a string, not a number."),
        ({"docs": ["a"]}, "docs in anvil.toml must be a string, not a list."),
        ({"docs": "a\0b"}, "docs in anvil.toml has a NUL character. Remove it."),
        ({"chunking": 3}, "chunking in anvil.toml must be a table, not a number."),
        (
            {"chunking": {"max_chunk_size": "6000"}},
            "chunking.max_chunk_size in anvil.toml must be a whole number, not a string.",
        ),
        (
            {"chunking": {"max_chunk_size": True}},
            "chunking.max_chunk_size in anvil.toml must be a whole number, not true or false.",
        ),
        (
            {"chunking": {"max_chunk_size": 6000.5}},
            "chunking.max_chunk_size in anvil.toml must be a whole number, not a number.",
        ),
        (
            {"chunking": {"merge_short_sections": 1}},
            "chunking.merge_short_sections in anvil.toml must be true or false, not a number.",
        ),
        ({"source": {"include": "*.md"}}, "source.include in anvil.toml must be a list of strings, not a string."),
        ({"source": {"include": ["*.md", 1]}}, "source.include in anvil.toml must be a list of strings, not a list."),
        ({"search": {"threshold": "high"}}, "search.threshold in anvil.toml must be a number, not a string."),
        ({"search": {"threshold": {}}}, "search.threshold in anvil.toml must be a number, not a table."),
    ],
)
def test_a_wrong_type_says_what_is_wanted(table: dict[str, object], message: str) -> None:
    assert refusal(table) == message


def test_a_whole_number_does_where_a_number_is_wanted() -> None:
    threshold = configure({"search": {"threshold": 1}}).search.threshold
    assert threshold == 1.0 and isinstance(threshold, float)


@pytest.mark.parametrize(
    ("variable", "value", "wanted"),
    [
        ("ANVIL_CHUNKING_MAX_CHUNK_SIZE", "many", "a whole number"),
        ("ANVIL_SEARCH_THRESHOLD", "high", "a number"),
        ("ANVIL_CHUNKING_MERGE_SHORT_SECTIONS", "maybe", "true or false"),
    ],
)
def test_a_variable_that_cannot_be_read_is_named(variable: str, value: str, wanted: str) -> None:
    assert refusal({}, {variable: value}) == f"{variable} must be {wanted}, not {value!r}."


@pytest.mark.parametrize(
    ("table", "part"),
    [
        ({"max_chunk_size": 199}, "chunking.max_chunk_size is 199"),
        ({"min_chunk_size": -1}, "chunking.min_chunk_size is -1"),
        ({"min_chunk_size": 6001}, "chunking.min_chunk_size is 6001"),
        ({"slugs": "gitlab"}, "chunking.slugs has an unknown value"),
    ],
)
def test_a_value_out_of_range_says_the_range(table: dict[str, object], part: str) -> None:
    message = refusal({"chunking": table})
    assert part in message and "Use" in message


@pytest.mark.parametrize(
    ("key", "value", "reach"),
    [
        ("source.max_file_bytes", -1, "from 1 to"),
        ("embedding.dimensions", -5, "from 1 to 8192"),
        ("embedding.dimensions", 8193, "from 1 to 8192"),
        ("embedding.threads", 0, "from 1 to 1024"),
        ("embedding.threads", 2**40, "from 1 to 1024"),
        ("search.threshold", 5.5, "from 0 to 1"),
        ("search.threshold", -0.1, "from 0 to 1"),
        ("search.threshold", math.nan, "from 0 to 1"),
        ("search.threshold", math.inf, "from 0 to 1"),
        ("fetch.refresh", -1, "from 0 to 2592000"),
        ("fetch.max_bytes", 0, "from 1 to"),
        ("library.convert_seconds", math.nan, "from 0.001 to 2592000"),
        ("library.download_seconds", math.inf, "from 0.001 to 2592000"),
        ("library.max_pages", 0, "from 1 to"),
        ("library.convert_memory_bytes", 2**70, "from 1 to"),
        ("context.chunk_size", 10**6, "from 200 to 100000"),
        ("context.refresh_interval_seconds", 0, "from 1 to 2592000"),
        ("context.max_file_size_bytes", 0, "from 1 to"),
    ],
)
def test_a_number_that_makes_no_sense_says_which_do(key: str, value: float, reach: str) -> None:
    table, _, name = key.partition(".")
    message = refusal({table: {name: value}})
    assert f"{key} is {value}. Use a value {reach}" in message and message.startswith("In anvil.toml: ")
    with pytest.raises(ConfigError, match="In the options given"):
        configure(flags={key: value})


def test_every_number_has_its_bounds() -> None:
    """Also one that is added later: nothing that is no sensible size of anything passes."""
    numbers = [key for key, kind in leaves() if kind in (int, float, int | None)]
    assert len(numbers) > 15
    for key in numbers:
        for value in (-1, 2**70):
            with pytest.raises(ConfigError, match=re.escape(f"{key} is ")):
                configure(flags={key: value})


def leaves(kind: type = Config, prefix: str = "") -> Iterator[tuple[str, object]]:
    """(dotted key, type) of all that can be set."""
    for name, hint in typing.get_type_hints(kind).items():
        if name == "tables":
            for table, place in registry.SETTINGS.items():
                yield from leaves(registry.load(place), f"{table}.")
        elif isinstance(hint, type) and dataclasses.is_dataclass(hint):
            yield from leaves(hint, f"{prefix}{name}.")
        elif hint != tuple[Collection, ...]:
            yield f"{prefix}{name}", hint


def test_the_table_of_a_capability_is_loaded_only_where_a_layer_sets_it() -> None:
    script = "import sys\nfrom anvil.settings.configuration import configure\n"
    script += "configure({'docs': 'd'}, {'ANVIL_LINT': 'x', 'ANVIL_DOCS': 'e'}, {'index': 'i.db'})\n"
    script += "assert not [name for name in sys.modules if name.count('.') == 2 and name.endswith('.settings')]\n"
    script += "configure({}, {'ANVIL_LINT_FAIL_LEVEL': 'note'})\n"
    script += "print([name for name in sys.modules if name.count('.') == 2 and name.endswith('.settings')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['anvil.lint.settings']"


def test_a_layer_is_judged_as_a_whole() -> None:
    """Two values of one layer may make sense together and with no value of the layer below."""
    both = configure({"chunking": {"min_chunk_size": 7000, "max_chunk_size": 9000}}).chunking
    assert (both.min_chunk_size, both.max_chunk_size) == (7000, 9000)
    file = {"chunking": {"max_chunk_size": 1000, "min_chunk_size": 500}}
    environment = {"ANVIL_CHUNKING_MAX_CHUNK_SIZE": "300", "ANVIL_CHUNKING_MIN_CHUNK_SIZE": "100"}
    over = configure(file, environment).chunking
    assert (over.max_chunk_size, over.min_chunk_size) == (300, 100)
    flags = {"chunking.min_chunk_size": 7000, "chunking.max_chunk_size": 8000}
    assert configure({}, {}, flags).chunking.max_chunk_size == 8000


def test_a_secret_is_never_printed() -> None:
    secret = "sk-very-secret-value"
    config = configure({"embedding": {"api_key": secret}})
    assert config.embedding.api_key == secret
    assert secret not in repr(config) and secret not in str(config)
    for table in (
        {"embedding": {"api_key": [secret]}},
        {"embedding": secret},
        {"docs": [secret]},
        {secret[:2]: secret},
        {"chunking": {"max_chunk_size": secret}},
    ):
        assert secret not in refusal(table)


# --- collections -----------------------------------------------------------------------------------------------


def test_collections_keep_their_order_and_their_names() -> None:
    found = configure(
        {"collections": {"docs": {"docs": "docs"}, "Fast_API": {"index": "https://example.org/", "version": "0.139"}}}
    ).collections
    assert [(each.name, each.docs, each.index, each.label) for each in found] == [
        ("docs", "docs", None, "docs"),
        ("Fast_API", None, "https://example.org/", "Fast_API@0.139"),
    ]


def test_one_collection_may_have_several_versions() -> None:
    versions = [{"index": "1.db", "version": "1.0"}, {"index": "2.db", "version": "2.0", "default": True}]
    found = configure({"collections": {"@acme/ui": versions}}).collections
    assert [(each.label, each.default) for each in found] == [("@acme/ui@1.0", False), ("@acme/ui@2.0", True)]


def test_a_collection_has_the_keys_of_the_project_and_its_own_on_top() -> None:
    config = configure(
        {
            "site": {"url": "https://example.org/"},
            "source": {"exclude": ["drafts/**"]},
            "search": {"threshold": 0.5},
            "collections": {
                "own": {"docs": "docs"},
                "handbook": {
                    "docs": "../handbook",
                    "source": {"maxFileBytes": 7},
                    "site": {"rule": "hugo"},
                    "chunking": {"slugs": "hugo"},
                },
            },
        }
    )
    own, handbook = (of_collection(config, each) for each in config.collections)
    assert (own.site.url, own.docs, own.collections) == ("https://example.org/", "docs", ())
    assert (handbook.site.url, handbook.site.rule, handbook.chunking.slugs) == ("", "hugo", "hugo")
    assert (handbook.source.exclude, handbook.source.max_file_bytes) == (("drafts/**",), 7)
    assert handbook.search.threshold == 0.5


@pytest.mark.parametrize(
    ("collections", "message"),
    [
        ({"a": {}}, "collections.a has no documents. Name their folder with docs, or their index with index."),
        ({"a": "x"}, "collections.a in anvil.toml must be a table, not a string."),
        ({"a": []}, "collections.a in anvil.toml must be a table, not a list."),
        ("x", "collections in anvil.toml must be a table, not a string. Write [collections.NAME]."),
        ({"a b": {"docs": "d"}}, "'a b' cannot name a collection. Use letters, digits and . _ -"),
        ({"": {"docs": "d"}}, "cannot name a collection"),
        ({"a": {"dcos": "d"}}, "Unknown key 'collections.a.dcos' in anvil.toml. Did you mean collections.a.docs?"),
        ({"a": {"name": "d"}}, "Unknown key 'collections.a.name' in anvil.toml."),
        ({"a": {"docs": 1}}, "collections.a.docs in anvil.toml must be a string, not a number."),
        ({"a": {"docs": " "}}, "collections.a.docs is empty. Give it a value, or leave the key out."),
        ({"a": {"docs": "d", "source": 1}}, "collections.a.source in anvil.toml must be a table, not a number."),
        ({"a": {"docs": "d", "source": {"inculde": []}}}, "Did you mean collections.a.source.include?"),
        ({"a": {"docs": "d", "site": {"rule": "x"}}}, "site.rule has an unknown value. Use one of directory, html,"),
        (
            {"a": {"docs": "d", "version": "1 0"}},
            "collections.a.version is not a version. Use at most 60 characters, no spaces",
        ),
        (
            {"a": {"index": "i", "attested_by": "https://me:secret@github.com/acme"}},
            "collections.a.attested_by is not a place on GitHub. Name an owner",
        ),
        ({"a": {"index": "s3://b/c"}}, "An index cannot be fetched from s3://."),
        (
            {"a": {"docs": "d", "source": {"include": ["a.md"]}}, "b": {"docs": "./d"}},
            "The collections a and b have the same index file, and each build would replace the other's. Give one",
        ),
        ({"a": {"docs": "d", "index": "x.db"}, "b": {"docs": "e", "index": "x.db"}}, "have the same index file"),
        ({"a": {"docs": "d"}, "A": {"docs": "e"}}, "There are two collections A. Give each its own name, or"),
        (
            {"a": [{"docs": v, "version": v, "default": True} for v in "12"]},
            "collections.a has two default versions. Set default = true for one of them.",
        ),
    ],
)
def test_a_collection_that_makes_no_sense_says_what_would(collections: object, message: str) -> None:
    assert message in refusal({"collections": collections})
