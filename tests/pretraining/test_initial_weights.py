from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from bertkit.data import cooccurrence
from bertkit.encoders import elmo, modernbert
from bertkit.encoders.bert import Bert, BertConfig, size
from bertkit.errors import BertkitError, usage_error
from bertkit.model import Model
from bertkit.objectives.mlm import MaskedLanguageModel
from bertkit.pretraining import initial_weights, job
from bertkit.pretraining.data import PretrainingData
from bertkit.pretraining.initial_weights import (
    check_token_table,
    dimensions,
    token_statistics,
)
from bertkit.pretraining.job import build_job
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.task import PretrainingTask
from bertkit.storage.atomic import write_file


@pytest.fixture
def counted(run: PretrainRun, monkeypatch: pytest.MonkeyPatch) -> PretrainRun:
    """The tiny run with initial weights from its corpus, which is far below the least number of tokens."""
    monkeypatch.setattr(cooccurrence, "LEAST_TOKENS", 10)
    monkeypatch.setattr(job, "LEAST_TOKENS", 10)
    assert isinstance(run.encoder, BertConfig)
    encoder = replace(run.encoder, hidden_size=24, num_heads=2, position_init="neighbour_heads")
    return replace(run, encoder=encoder, token_init="cooccurrence")


def test_a_job_starts_from_the_counts(counted: PretrainRun) -> None:
    data = PretrainingData.open(counted)
    model = build_job(counted, data=data).state.model
    statistics = token_statistics(data.train, counted.encoder)
    table = model.encoder.get_submodule("embeddings.word").weight
    assert isinstance(table, torch.Tensor)
    scale = 0.02 * 12**0.5
    torch.testing.assert_close(table[:, :12], torch.from_numpy(statistics["vectors"]) * scale)
    assert not table[:, 12:].any()
    head = model.objectives["mlm"]
    assert isinstance(head, MaskedLanguageModel)
    assert head.bias.exp().sum().item() == pytest.approx(1.0)
    assert head.bias.argmax() == int(np.argmax(statistics["log_frequency"]))
    assert head.transform is not None
    assert head.transform.weight.diagonal().mean().item() == pytest.approx(0.5, abs=0.02)


def test_the_statistics_are_computed_once(counted: PretrainRun, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = PretrainingData.open(counted).train
    first = token_statistics(corpus, counted.encoder)
    monkeypatch.setattr(initial_weights, "count_cooccurrences", None)
    again = token_statistics(corpus, counted.encoder)
    assert all(np.array_equal(first[name], again[name]) for name in ("vectors", "log_frequency"))


@pytest.mark.parametrize("suffix", ["safetensors", "sha256"])
def test_a_damaged_cache_is_computed_again(counted: PretrainRun, suffix: str) -> None:
    corpus = PretrainingData.open(counted).train
    first = token_statistics(corpus, counted.encoder)
    (path,) = counted.data.glob(f"cooccurrence-*.{suffix}")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    again = token_statistics(corpus, counted.encoder)
    assert np.array_equal(first["vectors"], again["vectors"])


def test_two_runs_that_write_the_cache_at_once_do_not_mix_their_tables(
    counted: PretrainRun, mixed: PretrainRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mixture is kept in the same file, and its table comes between the table and the stamp of the corpus alone."""
    one = PretrainingData.open(counted).train
    both = PretrainingData.open(replace(mixed, encoder=counted.encoder)).train

    def interrupted(path: Path, fill: Callable[[Path], object]) -> None:
        write_file(path, fill)
        if path.suffix == ".safetensors":
            monkeypatch.setattr(initial_weights, "write_file", write_file)
            token_statistics(both, counted.encoder)

    monkeypatch.setattr(initial_weights, "write_file", interrupted)
    first = token_statistics(one, counted.encoder)
    again = token_statistics(one, counted.encoder)
    assert np.array_equal(first["vectors"], again["vectors"])


def test_a_corpus_with_few_tokens_starts_at_random(run: PretrainRun) -> None:
    data = PretrainingData.open(run)
    plain = build_job(run, data=data).state.model
    counted = build_job(replace(run, token_init="cooccurrence"), data=data).state.model
    assert all(torch.equal(one, two) for one, two in zip(plain.parameters(), counted.parameters(), strict=True))


def test_tokens_have_the_columns_that_positions_leave() -> None:
    assert dimensions(size("2/24/2", vocab_size=99)) == 24
    assert dimensions(size("2/24/2", vocab_size=99, position_init="neighbour_heads")) == 12


def test_modernbert_starts_from_the_counts_too(counted: PretrainRun) -> None:
    """One column is the same for all words, and the transform of the masked LM is the encoder's."""
    changes = {"position_init": "neighbour_heads", "max_positions": 64}
    encoder = modernbert.size("3/32/2", vocab_size=counted.encoder.vocab_size, **changes)  # type: ignore[attr-defined]
    run = replace(counted, encoder=encoder, task=PretrainingTask(objectives=("mlm",)))
    assert dimensions(encoder) == 31
    data = PretrainingData.open(run)
    built = build_job(run, data=data).state.model.encoder
    assert isinstance(built, modernbert.ModernBert)
    vectors = torch.from_numpy(token_statistics(data.train, encoder)["vectors"])
    table = built.embeddings.word.weight
    seen = vectors.any(dim=1)
    torch.testing.assert_close(table[seen, :31], vectors[seen] * 0.02 * 31**0.5)
    assert (table[:, 31] == 0.08).all()
    mask = data.tokenizer.mask_id
    assert not seen[mask]
    assert table[mask, :31].norm().item() == pytest.approx(0.02 * 31**0.5, rel=0.4)  # else [MASK] outweighs all keys
    assert built.prediction_head.dense.weight.diagonal().mean().item() == pytest.approx(0.5, abs=0.02)


def test_an_encoder_that_cannot_start_from_the_counts_is_refused_before_counting(
    counted: PretrainRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ELMo derives from no Transformer; ALBERT's table is narrower than its layers."""
    monkeypatch.setattr(initial_weights, "count_cooccurrences", None)
    with pytest.raises(BertkitError, match="is for encoders that derive from Transformer, and elmo does not: give"):
        check_token_table(elmo.tiny())
    built: list[BertConfig] = []

    def build_narrow(run: PretrainRun) -> Model:
        built.append(run.encoder)  # type: ignore[arg-type]
        encoder = Bert(built[0])
        encoder.embeddings.word = torch.nn.Embedding(built[0].vocab_size, 7)
        return Model(encoder, {})

    monkeypatch.setattr(job, "build_pretraining_model", build_narrow)
    message = "the token embeddings of bert are 7 wide, and must be as wide as its layers, 24: give token_init=random"
    for initial in (True, False):
        with pytest.raises(BertkitError, match=message):
            build_job(counted, initial_weights=initial)


def test_a_read_only_data_folder_is_no_problem(counted: PretrainRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, write: object) -> None:
        raise usage_error(f"cannot write {path}: Permission denied.")  # as write_file says it

    monkeypatch.setattr(initial_weights, "write_file", refuse)
    corpus = PretrainingData.open(counted).train
    assert token_statistics(corpus, counted.encoder)["vectors"].shape == (corpus.corpora[0].manifest.vocab_size, 12)
    assert not list(counted.data.glob("cooccurrence-*"))
