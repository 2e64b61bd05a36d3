from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertkit.errors import usage_error
from bertkit.evaluation import speed_systems
from bertkit.evaluation.speed_systems import collect, in_batches, own_systems, peer_systems

TEXTS = ["No", "it is a dull , endless mess", "A film to see twice."]


def test_batches_are_padded_and_their_padding_is_not_averaged() -> None:
    seen: list[tuple[int, ...]] = []

    def run(tokens: Any, mask: Any) -> Any:
        seen.append(tokens.shape)
        return np.where(mask, tokens, 10**6)[..., None].astype(float)

    ids = {"a": [4.0], "b": [1, 2, 3], "c": [5, 6]}
    embed = in_batches(run, lambda texts: [ids[text] for text in texts], 2)
    assert embed(["a", "b", "c"]).tolist() == [[4.0], [2.0], [5.5]]
    assert seen == [(2, 3), (1, 1)]


def test_vectors_of_peers_are_those_of_bertkit(minilm: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="install transformers")
    (name, own), *_ = own_systems(minilm)
    assert name.startswith("bertkit float32")
    for _, peer in peer_systems("hf", minilm, tmp_path):
        one, other = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (own(TEXTS), peer(TEXTS)))
        assert (one * other).sum(axis=1).min() > 0.999


def test_a_peer_that_is_not_installed_is_left_out_with_the_reason(
    minilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def require(module: str, **_: str) -> None:
        raise usage_error(f"no {module}")

    monkeypatch.setattr(speed_systems, "require", require)
    systems, left_out = collect(minilm, ["hf", "st"], tmp_path)
    assert len(systems) == 3
    assert left_out == {"hf": "no transformers", "st": "no sentence_transformers"}
