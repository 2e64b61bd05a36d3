"""Tagging with a CRF: states of the tags, loss, well-formed predictions, and a pattern that is learned."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bertkit.batch import IGNORE, WORD_STARTS, Batch, EncoderOutput
from bertkit.metrics.entities import convert
from bertkit.objectives.crf_tagging import CrfTagging

TAGS = ("O", "B-X", "I-X", "B-Y", "I-Y")
OUT, BX, IX, BY, IY = range(5)
SENTENCES = [[BX, IX, IX, BX, OUT, BY], [IX, BX, IY, OUT, OUT, IY]]


@pytest.fixture
def head() -> CrfTagging:
    return CrfTagging(7, TAGS)


def make_batch(labels: list[list[int]]) -> Batch:
    """Sentences of six words, each of two tokens, the first of which has the label."""
    token_labels = torch.tensor([[each for label in row for each in (label, IGNORE)] for row in labels])
    starts = (torch.arange(12) % 2 == 0).long().expand_as(token_labels)
    zeros = torch.zeros_like(token_labels)
    return Batch(zeros, zeros, zeros == 0, {CrfTagging.label: token_labels, WORD_STARTS: starts})


def states_of(hidden: torch.Tensor) -> EncoderOutput:
    return EncoderOutput(hidden_states=hidden, pooled=hidden[:, 0])


def test_a_tag_has_one_state_inside_and_one_at_the_end_of_an_entity(head: CrfTagging) -> None:
    """As tags of BILOU: the state inside an entity is B or I, the state at its end is U or L."""
    tags = torch.tensor(SENTENCES)
    states = head._find_states(tags, torch.ones_like(tags, dtype=torch.bool))
    names = dict(enumerate(["O", "U-X", "L-X", "U-Y", "L-Y", "B-X", "I-X", "B-Y", "I-Y"]))
    bilou = [[names[number] for number in row] for row in states.tolist()]
    assert bilou[0] == ["B-X", "I-X", "L-X", "U-X", "O", "U-Y"]
    assert convert(bilou[0], "iob2") == [TAGS[tag] for tag in SENTENCES[0]]


def test_the_loss_is_minus_the_log_likelihood(head: CrfTagging) -> None:
    batch = make_batch(SENTENCES)
    outputs = head(states_of(torch.randn(2, 12, 7)), batch)
    emissions = outputs["emissions"][:, ::2]
    real = torch.ones(2, 6, dtype=torch.bool)
    tag_states = head._find_states(torch.tensor(SENTENCES), real)
    likelihood = head.crf.score(emissions, tag_states, real) - head.crf.log_partition(emissions, real)
    term = head.loss(outputs, batch)["crf_tags"]
    assert term.count == 12
    torch.testing.assert_close(term.sum, -likelihood.sum())


def test_predicted_tags_are_well_formed(head: CrfTagging) -> None:
    batch = make_batch([[OUT] * 6] * 37)
    logits = head.eval()(states_of(9 * torch.randn(37, 12, 7)), batch)["logits"]
    assert not logits[:, 1::2].any()
    tags = logits[:, ::2].argmax(dim=2)
    for row in tags.tolist():
        for before, after in zip(["O", *(TAGS[tag] for tag in row)], [TAGS[tag] for tag in row], strict=False):
            assert not after.startswith("I") or before[1:] == after[1:]
    assert len(tags.unique()) == 5


def test_bare_tags_are_well_formed_too() -> None:
    head = CrfTagging(7, ("O", "B", "I")).eval()
    logits = head(states_of(9 * torch.randn(13, 12, 7)), make_batch([[0] * 6] * 13))["logits"]
    for row in logits[:, ::2].argmax(dim=2).tolist():
        assert all(before != 0 for before, after in zip([0, *row], row, strict=False) if after == 2)


def test_tags_that_depend_on_their_neighbours_are_learned(head: CrfTagging) -> None:
    """All states are equal but that of the first word of the entity: only the transitions can learn its length."""
    batch = make_batch([[OUT, BY, IY, IY, OUT, OUT], [BY, IY, IY, OUT, OUT, OUT]])
    hidden = torch.zeros(2, 12, 7)
    hidden[0, 2] = hidden[1, 0] = 1.0
    optimizer = torch.optim.Adam(head.parameters(), lr=0.3)
    for _ in range(60):
        outputs = head(states_of(hidden), batch)
        optimizer.zero_grad()
        head.loss(outputs, batch)["crf_tags"].sum.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    assert "logits" not in outputs, "the best sequence is not searched for in training"
    best = head.eval()(states_of(hidden), batch)["logits"].argmax(dim=-1)
    assert (best == batch.labels["crf_tags"]).sum() >= 10, "at least 10 of 12"


def test_words_without_a_label_are_skipped(head: CrfTagging) -> None:
    batch = make_batch([[BX, IX, OUT, OUT, BY, OUT]])
    fewer = batch.labels["crf_tags"].clone()
    fewer[0, 6:8] = IGNORE
    hidden = torch.randn(1, 12, 7)
    outputs = head(states_of(hidden), batch)
    term = head.loss(outputs, replace(batch, labels={**batch.labels, "crf_tags": fewer}))["crf_tags"]
    shorter = torch.cat([outputs["emissions"][:, :6], outputs["emissions"][:, 8:]], dim=1)
    labels = torch.cat([fewer[:, :6], fewer[:, 8:]], dim=1)
    zeros = torch.zeros_like(labels)
    direct = head.loss({"emissions": shorter}, Batch(zeros, zeros, zeros == 0, {"crf_tags": labels}))["crf_tags"]
    torch.testing.assert_close(term.sum, direct.sum)
    assert term.count == direct.count == 5
