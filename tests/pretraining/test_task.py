"""What a model is pre-trained on, and the examples of that: without pairs, packed over the ends of documents."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.data.numbered_corpus import DOCUMENTS, corpus

from bertkit.batch import IGNORE, Batch
from bertkit.config.settings import parse_settings, refuse_without_effect
from bertkit.data.mixture import Mixture
from bertkit.data.segments import RowSegments, Sampling
from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.named_objectives import find_objective
from bertkit.objective_settings import Masking
from bertkit.objectives.mlm import MaskedLanguageModel
from bertkit.objectives.nsp import NextSentencePrediction
from bertkit.pretraining.task import PretrainingSource, PretrainingTask
from bertkit.text.wordpiece import WordPiece

TOKENS = sum(map(sum, DOCUMENTS))


@pytest.fixture
def source(tmp_path: Path) -> PretrainingSource:
    """Token k of the corpus is token k; the special tokens come after all of them."""
    tokens = [f"w{number}" for number in range(TOKENS)] + ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (tmp_path / "vocab.txt").write_text("\n".join(tokens), encoding="utf-8")
    task = PretrainingTask(objectives=("mlm",), sampling=Sampling(full_sentences=True))
    return PretrainingSource(
        task, Mixture((corpus(*DOCUMENTS),)), WordPiece.load(tmp_path / "vocab.txt"), seq_length=99, seed=5
    )


def test_full_sentences_are_masked_anew_in_every_epoch_and_their_separators_never(source: PretrainingSource) -> None:
    tokenizer, everything = source.tokenizer, np.arange(len(source))
    assert isinstance(tokenizer, WordPiece)
    first, second = source.batch(0, everything), source.batch(1, everything)
    originals = [
        torch.where(each.labels["mlm"] == IGNORE, each.input_ids, each.labels["mlm"]) for each in (first, second)
    ]
    assert torch.equal(*originals)
    assert not torch.equal(first.labels["mlm"], second.labels["mlm"])
    kept = originals[0][originals[0] < TOKENS]
    assert kept.tolist() == list(range(TOKENS))
    assert (originals[0][:, 0] == tokenizer.cls_id).all()
    separators = originals[0] == tokenizer.sep_id
    assert int(separators.sum()) > len(source) + 13
    for batch in (first, second):
        assert (batch.input_ids[separators] == tokenizer.sep_id).all()
        assert (batch.labels["mlm"][separators] == IGNORE).all()


@pytest.mark.parametrize(
    ("task", "setting", "needed"),
    [
        (PretrainingTask(objectives=("clm",)), "masking.rate=0.3", "the objective mlm"),
        (PretrainingTask(objectives=("passages",)), "masking.whole_word=true", "the objective mlm"),
        (PretrainingTask(objectives=("bilm",), targets=99), "masking.rate=0.3", "the objective mlm"),
        (PretrainingTask(objectives=("clm",)), "samples=37", "the objective bilm"),
        (PretrainingTask(objectives=("bilm",), targets=99), "copies=3", "an objective with rows in random order"),
        (
            PretrainingTask(objectives=("bilm",), targets=99),
            "sampling.short_sequences=0.3",
            "an objective with rows in random order",
        ),
        (
            PretrainingTask(objectives=("mlm",), sampling=Sampling(full_sentences=True)),
            "sampling.short_sequences=0.3",
            "task.sampling.full_sentences=false",
        ),
    ],
)
def test_a_setting_that_no_objective_reads_is_refused(task: PretrainingTask, setting: str, needed: str) -> None:
    with pytest.raises(BertkitError, match=f"^--set: {setting.partition('=')[0]} has no effect without {needed}"):
        refuse_without_effect(task, parse_settings([setting]))


@pytest.mark.parametrize(
    ("task", "settings"),
    [
        (PretrainingTask(), ["masking.rate=0.3", "copies=3", "sampling.random_next=0.3"]),
        (PretrainingTask(objectives=("passages", "mlm")), ["masking.rate=0.3", "sampling.short_sequences=0.3"]),
        (PretrainingTask(objectives=("clm",)), ["copies=3", "sampling.running_text=true"]),
        (PretrainingTask(objectives=("bilm",), targets=99), ["samples=37", "targets=99"]),
    ],
)
def test_a_setting_that_an_objective_reads_is_accepted(task: PretrainingTask, settings: list[str]) -> None:
    refuse_without_effect(task, parse_settings(settings))


def test_an_objective_that_returns_no_batch_is_named(
    source: PretrainingSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MaskedLanguageModel, "add_labels", classmethod(lambda *given: None))
    with pytest.raises(BertkitError, match="add_labels of MaskedLanguageModel gives no batch"):
        source.batch(0, np.arange(2))


def test_full_sentences_with_next_sentences_are_refused() -> None:
    with pytest.raises(
        BertkitError, match=r"task\.sampling\.full_sentences gives rows of one text, and nsp needs pairs"
    ) as caught:
        PretrainingTask(sampling=Sampling(full_sentences=True))
    assert caught.value.exit_code == WRONG_USAGE


def test_a_scheduled_masking_rate_follows_the_progress(source: PretrainingSource) -> None:
    def masked_share(batch: Batch) -> float:
        return float((batch.labels["mlm"] != IGNORE).sum()) / batch.num_tokens

    assert source.at(0.5) is source
    scheduled = copy(source)
    scheduled.task = replace(source.task, masking=Masking(rate=0.4, final_rate=0.2))
    everything = np.arange(len(source))
    shares = [masked_share(scheduled.at(progress).batch(0, everything)) for progress in (0, 0.25, 1)]
    assert shares == pytest.approx([0.4, 0.35, 0.2], abs=0.01)
    assert masked_share(scheduled.batch(0, everything)) == shares[0]
    again = [scheduled.at(0.25).batch(3, everything[rows]).input_ids[:1] for rows in (slice(0, 2), slice(0, 1))]
    assert torch.equal(*again)


def test_a_text_is_cut_into_two_rows_that_are_masked_apart(source: PretrainingSource) -> None:
    task = PretrainingTask(objectives=("mlm", "passages"), sampling=Sampling(short_sequences=0))
    tokenizer = source.tokenizer
    cut = PretrainingSource(task, Mixture((corpus(*DOCUMENTS),)), tokenizer, seq_length=34, seed=5)
    whole = PretrainingSource(
        replace(task, objectives=("mlm",)), Mixture((corpus(*DOCUMENTS),)), tokenizer, seq_length=32, seed=5
    )
    indices = np.array([3, 0, 5])
    batch = cut.batch(1, indices)
    assert batch.rows_per_feature is not None
    assert batch.input_ids.shape[1] <= 17
    rows = iter(torch.where(batch.labels["mlm"] == IGNORE, batch.input_ids, batch.labels["mlm"]))
    texts = [
        [token for _ in range(count) for token in next(rows).tolist() if token < TOKENS]
        for count in batch.rows_per_feature.tolist()
    ]
    expected = whole.sampler.segments(1, indices)  # of the same number of tokens, so the same texts
    assert texts == [segments.first.tolist() for segments in expected]
    assert batch.labels["passages"].tolist() == [
        0 if count == 2 else IGNORE for count in batch.rows_per_feature.tolist()
    ]
    assert 2 in batch.rows_per_feature
    alone = cut.batch(1, indices[2:])
    width = alone.input_ids.shape[1]
    assert torch.equal(batch.input_ids[-len(alone) :, :width], alone.input_ids)
    masks = (batch.labels["mlm"] != IGNORE).int()
    assert any(not torch.equal(masks[row], masks[row + 1]) for row in range(len(masks) - 1))


def test_a_single_token_is_one_row_without_a_label(source: PretrainingSource) -> None:
    feature = source.encode_passages(RowSegments(np.array([7])))
    assert feature.lengths is not None
    assert feature.lengths.tolist() == [3]
    assert feature.labels == {"passages": IGNORE}


def test_passages_and_pairs_are_not_combined() -> None:
    with pytest.raises(BertkitError, match="nsp, which puts two segments into a row, and passages, which") as caught:
        PretrainingTask(objectives=("mlm", "nsp", "passages"))
    assert caught.value.exit_code == WRONG_USAGE


def test_masks_that_are_kept_do_not_change() -> None:
    with pytest.raises(BertkitError, match=r"task\.copies keeps the masks of a row, and task\.masking\.final_rate"):
        PretrainingTask(copies=10, masking=Masking(final_rate=0.1))


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("label", "my.nsp", r'nsp, class NextSentencePrediction: label is "my\.nsp", which torch does not take'),
        ("label", "train", 'label is "train", which torch does not take as the name of a head. Choose another name'),
        ("label", None, "label is null"),
        ("rows", "pair", 'rows is "pair". Choose one of any, pairs, passages, streams'),
        ("context", "both", 'context is "both". Choose one of bidirectional, causal, two_directions, or None'),
    ],
)
def test_an_objective_that_cannot_be_used_is_a_usage_error(
    attribute: str, value: str | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NextSentencePrediction, attribute, value)
    with pytest.raises(BertkitError, match=message) as caught:
        PretrainingTask()
    assert caught.value.exit_code == WRONG_USAGE


def test_labels_of_another_name_are_a_usage_error(source: PretrainingSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MaskedLanguageModel, "add_labels", lambda batch, *_: batch.with_labels(masked=batch.input_ids))
    with pytest.raises(BertkitError, match='add_labels of MaskedLanguageModel gives no labels named "mlm"'):
        source.batch(0, np.arange(3))


def test_an_objective_sees_what_those_before_it_have_changed(
    source: PretrainingSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the order of the list decides whether masked tokens are predicted as they were, or as they were changed."""

    def shift(batch: Batch, *_: object) -> Batch:
        changed = torch.where(batch.input_ids < TOKENS, (batch.input_ids + 1) % TOKENS, batch.input_ids)
        return replace(batch, input_ids=changed).with_labels(nsp=torch.zeros(len(batch), dtype=torch.long))

    monkeypatch.setattr(NextSentencePrediction, "add_labels", shift)
    monkeypatch.setattr(NextSentencePrediction, "rows", "any")
    found = {}
    for names in (("mlm",), ("mlm", "nsp"), ("nsp", "mlm")):
        other = copy(source)
        other._objectives = [find_objective(name) for name in names]
        found[names] = other.batch(0, np.arange(3)).labels["mlm"]
    assert torch.equal(found["mlm", "nsp"], found["mlm",])
    labelled = found["mlm",] != IGNORE
    assert torch.equal(found["nsp", "mlm"][labelled], (found["mlm",][labelled] + 1) % TOKENS)
