"""A server with tiny models of every kind, and one with a real model of embeddings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.running import TASKS, running, save_tiny_models, served

from bertkit.server.models import ServedModel
from bertkit.server.run import Server


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def loaded(tiny_models: Path) -> list[ServedModel]:
    return served(tiny_models, *TASKS, "words")


@pytest.fixture(scope="session")
def server(loaded: list[ServedModel]) -> Iterator[Server]:
    with running(loaded) as server:
        yield server
