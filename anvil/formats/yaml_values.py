"""YAML of other people's files, read as data: bounded, without running anything."""

from __future__ import annotations

from typing import Any, Literal

import yaml

MAX_DEPTH = 32
"""Levels of nested mappings and lists."""
MAX_ALIASED_NODES = 10_000
"""Nodes that aliases and merge keys stand for, together: aliases of aliases multiply ("billion laughs")."""

Tags = Literal["refuse", "plain", "null"]
"""What a value under another program's tag, such as ``!ENV``, becomes: an error, the value without the tag, or None."""

_SafeLoader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TextLoader: type[Any] = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class _PlainLoader(_SafeLoader):  # type: ignore[misc]
    """A loader that reads values under unknown tags without their tags."""


class _NullLoader(_SafeLoader):  # type: ignore[misc]
    """A loader that reads values under unknown tags as None."""


def _untagged(loader: Any, suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return node.value or suffix


_PlainLoader.add_multi_constructor("", _untagged)
_NullLoader.add_multi_constructor("", lambda loader, suffix, node: None)
_LOADERS = {"refuse": _SafeLoader, "plain": _PlainLoader, "null": _NullLoader}


def loads(text: str, tags: Tags = "refuse", *, strings: bool = False) -> Any:
    """The value of a YAML text. ``strings``: scalars stay text, so ``1.10`` is not 1.1; tags then do not count.

    Raises ValueError, which names the line, for text that is not YAML or that has too many levels or aliases.
    """
    try:
        _ensure_bounded(text)
        return yaml.load(text, Loader=_TextLoader if strings else _LOADERS[tags])
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}" if mark else "it"
        problem = getattr(error, "problem", None)
        raise ValueError(f"{place} is not YAML" + (f": {problem}" if problem else "")) from error
    except (TypeError, OverflowError, AttributeError, LookupError, RecursionError) as error:
        raise ValueError("it is not YAML") from error  # PyYAML raises these for some scalars


def _ensure_bounded(text: str) -> None:
    """Raise ValueError for YAML of too many levels, or whose aliases stand for too many nodes.

    The events are walked, which needs no recursion, before anything is built out of them.
    """
    sizes: dict[str, int] = {}  # anchor -> nodes of its value, with those that aliases in it stand for
    open_collections: list[tuple[str | None, int]] = []
    size = aliased = 0
    for event in yaml.parse(text, Loader=_SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            open_collections.append((event.anchor, size))
            size = 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, outer = open_collections.pop()
            if anchor is not None:
                sizes[anchor] = size
            size += outer
        elif isinstance(event, yaml.AliasEvent):
            nodes = sizes.get(event.anchor or "", MAX_ALIASED_NODES)  # not yet known: it would hold itself
            aliased += nodes if nodes > 1 else 0
            size += nodes
        elif isinstance(event, yaml.ScalarEvent):
            if event.anchor is not None:
                sizes[event.anchor] = 1
            size += 1
        if len(open_collections) > MAX_DEPTH or aliased >= MAX_ALIASED_NODES:
            line = event.start_mark.line + 1 if event.start_mark else 0
            raise ValueError(f"line {line} has too many levels or aliases")
