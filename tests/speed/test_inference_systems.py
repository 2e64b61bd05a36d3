from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertkit.errors import BertkitError
from bertkit.machine.precision import Precision
from bertkit.speed.inference_systems import in_batches, own_systems, peer_systems

FORMATS: Sequence[Precision] = ("float32", "bfloat16")
TEXTS = ["No", "it is a dull , endless mess", "A film to see twice."]


def test_batches_are_padded_and_their_padding_is_not_averaged() -> None:
    seen: list[tuple[int, ...]] = []

    def run(tokens: Any, mask: Any) -> Any:
        seen.append(tokens.shape)
        return np.where(mask, tokens, 10**6)[..., None].astype(float)

    ids = {"a": [4.0], "b": [1, 2, 3], "c": [5, 6]}
    embed = in_batches(run, lambda texts: [ids[text] for text in texts], "mean", 2)
    assert embed(["a", "b", "c"]).tolist() == [[4.0], [2.0], [5.5]]
    assert seen == [(2, 3), (1, 1)]


def test_vectors_of_peers_are_those_of_bertkit(minilm: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="install transformers")
    (name, make_own), *_ = own_systems(minilm, FORMATS)
    assert name == "bertkit float32"
    own = make_own()
    for _, make_peer in peer_systems(minilm, FORMATS, tmp_path, "hf"):
        found = (own(TEXTS), make_peer()(TEXTS))
        one, other = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in found)
        assert (one * other).sum(axis=1).min() > 0.999


def test_a_peer_that_is_not_installed_is_refused_with_its_name(
    minilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(
        BertkitError, match=r"^--against st needs sentence-transformers: pip install 'bertkit\[bench\]'"
    ):
        list(peer_systems(minilm, FORMATS, tmp_path, "st"))
