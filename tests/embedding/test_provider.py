"""The dict of providers and what all of them share."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from anvil.embedding.provider import PROVIDERS, create_provider
from anvil.errors import ConfigError
from anvil.settings.schema import PROVIDERS_HELP, EmbeddingSettings


def test_importing_the_room_and_naming_a_provider_loads_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from anvil.settings.schema import EmbeddingSettings\n"
        "from anvil.embedding.provider import PROVIDERS, create_provider\n"
        "for name in PROVIDERS: create_provider(name, EmbeddingSettings()).digest\n"
        "heavy = {'numpy', 'onnxruntime', 'tokenizers', 'openai', 'huggingface_hub'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_help_of_commands_lists_all_providers() -> None:
    assert {each.split()[0] for each in PROVIDERS_HELP.split(", ")} == set(PROVIDERS)


def test_unknown_provider_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"'bert'.*local, none, openai"):
        create_provider("bert", EmbeddingSettings())


@pytest.mark.parametrize("name", sorted(PROVIDERS))
def test_each_provider_says_who_it_is_without_loading(name: str) -> None:
    found = create_provider(name, EmbeddingSettings(provider=name))
    assert found.name == name
    assert found.model
    assert len(found.digest) == 64
    found.close()


def test_digests_tell_models_and_dimensions_apart() -> None:
    settings = [
        EmbeddingSettings(),
        EmbeddingSettings(dimensions=512),
        EmbeddingSettings(model="text-embedding-3-large"),
    ]
    digests = [create_provider("openai", entry).digest for entry in settings]
    digests += [
        create_provider("local", EmbeddingSettings()).digest,
        create_provider("none", EmbeddingSettings()).digest,
    ]
    assert len(set(digests)) == 5


def test_no_provider_embeds_to_nothing() -> None:
    none = create_provider("none", EmbeddingSettings())
    assert none.dimensions == 0
    assert none.embed(["a", "b"]).vectors.shape == (2, 0)
    assert none.embed(["a"]).failed == {}
    assert none.embed_query("a").shape == (0,)
    assert none.embed_query("a").dtype == np.float32
    assert none.token_spans(["a", "b"]) == [[], []]


def test_the_key_is_in_no_repr() -> None:
    assert "secret" not in repr(EmbeddingSettings(api_key="sk-secret"))
    assert "secret" not in repr(create_provider("openai", EmbeddingSettings(api_key="sk-secret")))
