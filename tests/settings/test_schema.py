"""The keys of the configuration: their ranges, and errors that name the key and the next step."""

from __future__ import annotations

import dataclasses
import math
import re
import typing
from collections.abc import Iterator
from typing import Any

import pytest

from anvil import registry
from anvil.errors import ConfigError
from anvil.settings.configuration import configure
from anvil.settings.schema import (
    Collection,
    Config,
)


def refusal(*layers: Any, origin: str = "anvil.toml") -> str:
    with pytest.raises(ConfigError) as error:
        configure(*layers, origin=origin)
    return str(error.value)


def test_a_blank_path_is_no_path() -> None:
    assert refusal({"docs": " "}).startswith("In anvil.toml: docs is empty.")
    assert refusal({"index": " "}).startswith("In anvil.toml: index is empty.")


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
