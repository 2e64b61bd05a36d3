from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertkit.errors import BertkitError
from bertkit.inference.pipeline import load
from bertkit.machine.precision import Precision
from bertkit.speed import inference_systems
from bertkit.speed.inference_systems import in_batches, own_systems, peer_systems

FORMATS: Sequence[Precision] = ("float32", "bfloat16")
TEXTS = ["No", "it is a dull , endless mess", "A film to see twice."]


def test_batches_are_padded_and_their_padding_is_not_averaged(minilm: Path) -> None:
    seen: list[tuple[int, ...]] = []

    def run(tokens: Any, mask: Any) -> Any:
        seen.append(tokens.shape)
        return np.where(mask, tokens, 10**6)[..., None].astype(float)

    model = load(minilm)
    tokenizer = model.tokenizer
    inside = tokenizer.encode("a film to see").ids
    embed = in_batches(run, model, 2)
    means = embed(["a", "a film to see", "a film"])[:, 0].tolist()
    rows = [[tokenizer.start_id, *inside[:length], tokenizer.end_id] for length in (1, 4, 2)]
    assert means == pytest.approx([sum(row) / len(row) for row in rows])
    assert seen == [(2, 6), (1, 3)]


def test_peers_read_no_more_tokens_than_the_model_has_positions(minilm: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, ...]] = []

    def run(tokens: Any, mask: Any) -> Any:
        seen.append(tokens.shape)
        return np.zeros((*tokens.shape, 1))

    folder = tmp_path / "model"
    shutil.copytree(minilm, folder)
    file = folder / "sentence_bert_config.json"
    file.write_text(file.read_text().replace("256", "1000"))
    in_batches(run, load(folder), 2)(["film " * 700])
    assert seen == [(1, 512)]


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


def test_bertkit_runs_on_the_processor_that_its_peers_run_on(minilm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    devices: list[str] = []

    def note(folder: Path, *, precision: str, device: str = "auto") -> Any:
        devices.append(device)
        return load(folder)

    monkeypatch.setattr(inference_systems, "load", note)
    for _, make in own_systems(minilm, FORMATS):
        make()
    assert devices == ["cpu"] * 3
