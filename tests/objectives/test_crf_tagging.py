"""Tags told together: their states by hand, what never follows what, and that a pattern is learned."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bertkit.batch import IGNORE, Batch, EncoderOutput
from bertkit.metrics.entities import convert
from bertkit.objectives._word_positions import WORD_STARTS
from bertkit.objectives.crf_tagging import CrfTagging

TAGS = ("O", "B-X", "I-X", "B-Y", "I-Y")
OUT, BX, IX, BY, IY = range(5)
SENTENCES = [[BX, IX, IX, BX, OUT, BY], [IX, BX, IY, OUT, OUT, IY]]


@pytest.fixture
def head() -> CrfTagging:
    return CrfTagging(7, TAGS)


def make_batch(labels: list[list[int]]) -> Batch:
    """Sentences of six words; every second token begins none."""
    spread = torch.tensor([[each for label in row for each in (label, IGNORE)] for row in labels])
    starts = (torch.arange(12) % 2 == 0).long().expand_as(spread)
    nothing = torch.zeros_like(spread)
    return Batch(nothing, nothing, nothing == 0, {CrfTagging.label: spread, WORD_STARTS: starts})


def states_of(hidden: torch.Tensor) -> EncoderOutput:
    return EncoderOutput(hidden_states=hidden, pooled=hidden[:, 0])


def test_a_tag_has_a_state_for_the_end_of_an_entity_and_one_for_going_on(head: CrfTagging) -> None:
    """By the conversion of the scores: a state that goes on is B or I of BILOU, one that ends U or L."""
    tags = torch.tensor(SENTENCES)
    states = head._find_states(tags, torch.ones_like(tags, dtype=torch.bool))
    names = dict(enumerate(["O", "U-X", "L-X", "U-Y", "L-Y", "B-X", "I-X", "B-Y", "I-Y"]))
    told = [[names[number] for number in row] for row in states.tolist()]
    assert told[0] == ["B-X", "I-X", "L-X", "U-X", "O", "U-Y"]
    assert convert(told[0], "iob2") == [TAGS[tag] for tag in SENTENCES[0]]


def test_the_loss_is_minus_the_log_likelihood(head: CrfTagging) -> None:
    batch = make_batch(SENTENCES)
    outputs = head(states_of(torch.randn(2, 12, 7)), batch)
    emissions = outputs["emissions"][:, ::2]
    real = torch.ones(2, 6, dtype=torch.bool)
    numbers = head._find_states(torch.tensor(SENTENCES), real)
    likelihood = head.crf.score(emissions, numbers, real) - head.crf.log_partition(emissions, real)
    term = head.loss(outputs, batch)["crf_tags"]
    assert term.count == 12
    torch.testing.assert_close(term.sum, -likelihood.sum())


def test_nothing_that_is_ill_formed_is_told(head: CrfTagging) -> None:
    batch = make_batch([[OUT] * 6] * 37)
    logits = head(states_of(9 * torch.randn(37, 12, 7)), batch)["logits"]
    assert not logits[:, 1::2].any()
    tags = logits[:, ::2].argmax(dim=2)
    for row in tags.tolist():
        for before, after in zip(["O", *(TAGS[tag] for tag in row)], [TAGS[tag] for tag in row], strict=False):
            assert not after.startswith("I") or before[1:] == after[1:]
    assert len(tags.unique()) == 5


def test_a_tag_that_its_neighbours_tell_is_learned(head: CrfTagging) -> None:
    """Every token looks the same but the first of an entity of Y; how long entities are the chain has to know."""
    batch = make_batch([[OUT, BY, IY, IY, OUT, OUT], [BY, IY, IY, OUT, OUT, OUT]])
    hidden = torch.zeros(2, 12, 7)
    hidden[0, 2] = hidden[1, 0] = 1.0
    optimizer = torch.optim.Adam(head.parameters(), lr=0.3)
    for _ in range(60):
        outputs = head(states_of(hidden), batch)
        optimizer.zero_grad()
        head.loss(outputs, batch)["crf_tags"].sum.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    metrics = head.metrics(head(states_of(hidden), batch), batch)["crf_tags_accuracy"]
    assert metrics.sum.item() >= 10, "of 12"


def test_words_without_a_label_are_passed_over(head: CrfTagging) -> None:
    batch = make_batch([[BX, IX, OUT, OUT, BY, OUT]])
    fewer = batch.labels["crf_tags"].clone()
    fewer[0, 6:8] = IGNORE
    hidden = torch.randn(1, 12, 7)
    outputs = head(states_of(hidden), batch)
    term = head.loss(outputs, replace(batch, labels={**batch.labels, "crf_tags": fewer}))["crf_tags"]
    shorter = torch.cat([outputs["emissions"][:, :6], outputs["emissions"][:, 8:]], dim=1)
    labels = torch.cat([fewer[:, :6], fewer[:, 8:]], dim=1)
    nothing = torch.zeros_like(labels)
    direct = head.loss({"emissions": shorter}, Batch(nothing, nothing, nothing == 0, {"crf_tags": labels}))["crf_tags"]
    torch.testing.assert_close(term.sum, direct.sum)
    assert term.count == direct.count == 5
