"""Layers of the configuration: their order, spellings, variables, unknown keys and wrong types."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from anvil.errors import ConfigError
from anvil.settings.configuration import configure, of_collection
from anvil.settings.schema import (
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
