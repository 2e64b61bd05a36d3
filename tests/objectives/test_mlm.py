from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional as F

from bertkit.batch import IGNORE, Batch, EncoderOutput
from bertkit.objective_settings import Masking
from bertkit.objectives.mlm import MaskedLanguageModel, mask_tokens
from bertkit.rng import CounterRng

VOCAB, MASK, CLS, SEP = 997, 4, 2, 3
CONTINUES = np.arange(VOCAB) % 3 == 0


def make_batch(lengths: list[int], width: int | None = None) -> Batch:
    """Rows ``[CLS] A [SEP] B [SEP]`` that depend on their length and index only."""
    width = width or max(lengths)
    ids = torch.zeros(len(lengths), width, dtype=torch.int64)
    for row, length in enumerate(lengths):
        ids[row, :length] = 5 + (torch.arange(length) * 31 + row * 97) % (VOCAB - 5)
        ids[row, 0], ids[row, length // 2], ids[row, length - 1] = CLS, SEP, SEP
    real = torch.arange(width) < torch.tensor(lengths)[:, None]
    return Batch(input_ids=ids, segment_ids=torch.zeros_like(ids), attention_mask=real, labels={})


def mask(batch: Batch, masking: Masking, *, indices: Any = None, seed: int = 1, epoch: int = 0) -> Batch:
    indices = np.arange(len(batch)) if indices is None else np.asarray(indices)
    return mask_tokens(
        batch,
        CounterRng(seed, epoch, indices),
        masking,
        vocab_size=VOCAB,
        mask_id=MASK,
        special_ids=(CLS, SEP),
        continues_word=CONTINUES,
    )


def counts_of(batch: Batch) -> list[int]:
    counts: list[int] = (batch.labels["mlm"] != IGNORE).sum(dim=1).tolist()
    return counts


@pytest.mark.parametrize("limit", [None, 7])
def test_the_number_of_predictions_is_that_of_the_paper(limit: int | None) -> None:
    lengths = list(range(5, 129))
    masked = mask(make_batch(lengths), Masking(max_predictions=limit))
    assert counts_of(masked) == [min(limit or 999, max(1, round(0.15 * length))) for length in lengths]


def test_shares_of_masked_random_and_kept_tokens() -> None:
    batch = make_batch([128] * 512)
    masking = Masking(rate=0.2, mask=0.7, random=0.2, keep=0.1)
    masked = mask(batch, masking)
    chosen = masked.labels["mlm"] != IGNORE
    now, before = masked.input_ids[chosen], batch.input_ids[chosen]
    assert chosen.sum() == 512 * round(0.2 * 128)
    assert (now == MASK).float().mean().item() == pytest.approx(0.7, abs=0.02)
    assert (now == before).float().mean().item() == pytest.approx(0.1, abs=0.015)
    assert ((now != before) & (now != MASK)).float().mean().item() == pytest.approx(0.2, abs=0.02)


def test_random_tokens_come_from_the_whole_vocabulary() -> None:
    batch = make_batch([128] * 2048)
    masked = mask(batch, Masking(rate=0.5, mask=0, random=1, keep=0))
    random_ids = masked.input_ids[masked.labels["mlm"] != IGNORE]
    seen = torch.bincount(random_ids, minlength=VOCAB)
    assert len(seen) == VOCAB
    assert bool((seen > 0).all())
    expected = len(random_ids) / VOCAB
    chi_square = ((seen - expected) ** 2 / expected).sum().item()
    assert abs(chi_square - VOCAB) < 5 * (2 * VOCAB) ** 0.5


def test_all_positions_are_chosen_equally_often() -> None:
    masked = mask(make_batch([37] * 4096), Masking())
    share = (masked.labels["mlm"] != IGNORE).float().mean(dim=0)
    positions = [position for position in range(37) if position not in (0, 18, 36)]
    expected = round(0.15 * 37) / len(positions)
    assert share[positions].min().item() > expected - 0.03
    assert share[positions].max().item() < expected + 0.03


@pytest.mark.parametrize("whole_word", [False, True])
def test_special_tokens_and_padding_are_never_chosen(whole_word: bool) -> None:
    batch = make_batch([128, 99, 37, 13, 7, 5] * 20)
    masked = mask(batch, Masking(rate=1.0, whole_word=whole_word))
    chosen = masked.labels["mlm"] != IGNORE
    special = (batch.input_ids == CLS) | (batch.input_ids == SEP) | ~batch.attention_mask
    assert not (chosen & special).any()
    assert torch.equal(chosen, ~special)
    assert torch.equal(masked.input_ids[special], batch.input_ids[special])


def test_other_tokens_are_unchanged_and_labels_are_the_original_tokens() -> None:
    batch = make_batch([37, 99])
    masked = mask(batch, Masking(mask=0.5, random=0.5, keep=0))
    chosen = masked.labels["mlm"] != IGNORE
    assert torch.equal(masked.input_ids[~chosen], batch.input_ids[~chosen])
    assert torch.equal(masked.labels["mlm"][chosen], batch.input_ids[chosen])
    assert masked.input_ids.dtype == masked.labels["mlm"].dtype == torch.int64


@pytest.mark.parametrize("whole_word", [False, True])
def test_masking_of_a_row_does_not_depend_on_the_other_rows(whole_word: bool) -> None:
    masking = Masking(whole_word=whole_word)
    together = mask(make_batch([99, 37, 128]), masking, indices=[70, 71, 72])
    row = make_batch([99, 37, 128]).input_ids[1:2]
    alone = Batch(
        input_ids=row[:, :37],
        segment_ids=torch.zeros(1, 37, dtype=torch.int64),
        attention_mask=torch.ones(1, 37, dtype=torch.bool),
        labels={},
    )
    alone = mask(alone, masking, indices=[71])
    assert torch.equal(alone.input_ids[0], together.input_ids[1, :37])
    assert torch.equal(alone.labels["mlm"][0], together.labels["mlm"][1, :37])


def test_masking_depends_on_seed_epoch_and_index() -> None:
    batch = make_batch([128])
    first = mask(batch, Masking(), indices=[5], seed=1, epoch=2).labels["mlm"]
    assert torch.equal(first, mask(batch, Masking(), indices=[5], seed=1, epoch=2).labels["mlm"])
    for other in ({"seed": 2, "epoch": 2}, {"seed": 1, "epoch": 3}):
        assert not torch.equal(first, mask(batch, Masking(), indices=[5], **other).labels["mlm"])
    assert not torch.equal(first, mask(batch, Masking(), indices=[6], seed=1, epoch=2).labels["mlm"])


def words_of(ids: NDArray[np.int64]) -> list[list[int]]:
    """The positions of each word of a row, by a simple loop."""
    words: list[list[int]] = []
    for position, token in enumerate(ids):
        if token in (CLS, SEP, 0):
            continue
        if CONTINUES[token] and position and ids[position - 1] not in (CLS, SEP):
            words[-1].append(position)
        else:
            words.append([position])
    return words


def test_whole_words_are_chosen_up_to_the_number_of_predictions() -> None:
    lengths = [128, 99, 37, 13] * 30
    batch = make_batch(lengths)
    masked = mask(batch, Masking(whole_word=True))
    chosen = (masked.labels["mlm"] != IGNORE).numpy()
    for row, length in enumerate(lengths):
        budget = max(1, round(0.15 * length))
        words = words_of(batch.input_ids[row].numpy())
        chosen_words = [word for word in words if chosen[row, word].any()]
        assert all(chosen[row, word].all() for word in chosen_words)
        left = budget - chosen[row].sum()
        assert left >= 0
        assert all(len(word) > left for word in words if word not in chosen_words)


def test_tokens_of_a_whole_word_are_replaced_independently() -> None:
    batch = make_batch([128] * 64)
    masked = mask(batch, Masking(whole_word=True))
    chosen = masked.labels["mlm"] != IGNORE
    share = (masked.input_ids[chosen] == MASK).float().mean().item()
    assert share == pytest.approx(0.8, abs=0.04)
    mixed = 0
    for row in range(64):
        for word in words_of(batch.input_ids[row].numpy()):
            is_masked = masked.input_ids[row, word] == MASK
            mixed += int(bool(chosen[row, word[0]]) and bool(is_masked.any()) and not bool(is_masked.all()))
    assert mixed > 0


def make_head() -> tuple[MaskedLanguageModel, EncoderOutput, Batch]:
    embedding = nn.Embedding(VOCAB, 24)
    masked = mask(make_batch([37, 13, 7]), Masking())
    hidden = torch.randn(3, 37, 24)
    return MaskedLanguageModel(embedding), EncoderOutput(hidden_states=hidden, pooled=hidden[:, 0]), masked


def test_only_labelled_positions_are_projected() -> None:
    head, states, batch = make_head()
    chosen = batch.labels["mlm"] != IGNORE
    logits = head(states, batch)["logits"]
    assert logits.shape == (batch.labels["mlm"].ne(IGNORE).sum(), VOCAB)
    everywhere = head(states, Batch(batch.input_ids, batch.segment_ids, batch.attention_mask, {}))["logits"]
    torch.testing.assert_close(everywhere.view(3, 37, VOCAB)[chosen], logits, rtol=0, atol=1e-5)


def test_loss_is_the_summed_cross_entropy() -> None:
    head, states, batch = make_head()
    labels = batch.labels["mlm"]
    logits = head(states, Batch(batch.input_ids, batch.segment_ids, batch.attention_mask, {}))["logits"]
    expected = F.cross_entropy(logits, labels.flatten(), ignore_index=IGNORE, reduction="sum")
    term = head.loss(head(states, batch), batch)["mlm"]
    torch.testing.assert_close(term.sum, expected, rtol=1e-5, atol=0)
    assert term.count == int((labels != IGNORE).sum())


def test_accuracy_counts_the_right_tokens() -> None:
    head, _, batch = make_head()
    labels = batch.labels["mlm"]
    labels = labels[labels != IGNORE]
    logits = F.one_hot(labels, VOCAB).float()
    logits[:3] = logits[:3].roll(1, dims=1)
    term = head.metrics({"logits": logits}, batch)["mlm_accuracy"]
    assert (int(term.sum), term.count) == (len(labels) - 3, len(labels))


def test_the_tied_embedding_is_trained_but_no_parameter_of_the_head() -> None:
    head, states, batch = make_head()
    assert {name for name, _ in head.named_parameters()} == {
        "transform.weight",
        "transform.bias",
        "norm.weight",
        "norm.bias",
        "bias",
    }
    head.loss(head(states, batch), batch)["mlm"].sum.backward()  # type: ignore[no-untyped-call]
    assert head._tied[0].weight.grad is not None
