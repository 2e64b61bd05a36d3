"""BiDAF against its formulas, one pair of texts at a time; which positions have states; overfitting."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.encoders.pairs import make_pairs, overfit
from torch import Tensor, nn

from bertkit.batch import Batch
from bertkit.data.features import collate
from bertkit.encoder_types.words import WordReaderConfig
from bertkit.encoders.bidaf import Bidaf, BidafConfig, tiny
from bertkit.errors import BertkitError
from bertkit.nn.highway import Highway
from bertkit.tasks.squad import v2
from bertkit.text import words

WORD_LENGTH = 7
LENGTHS = ((5, 4), (2, 7), (1, 1), (4, 2))
BOTH = 6
"""The size of both directions of the tiny network."""


def make_batch(lengths: tuple[tuple[int, int], ...] = LENGTHS) -> Batch:
    return make_pairs(lengths, word_length=1 + WORD_LENGTH)


def run_lstms(lstm: nn.Module, states: Tensor) -> Tensor:
    for layer in lstm.layers:  # type: ignore[union-attr]
        assert isinstance(layer, nn.LSTM)
        states = layer(states[None])[0][0]
    return states


def attention_flow(h: Tensor, u: Tensor, weight: Tensor) -> Tensor:
    scores = torch.stack([torch.stack([weight @ torch.cat([t, j, t * j]) for j in u]) for t in h])
    context_to_query = scores.softmax(dim=1) @ u
    query_to_context = scores.max(dim=1).values.softmax(dim=0) @ h
    return torch.cat([h, context_to_query, h * context_to_query, h * query_to_context], dim=1)


@torch.no_grad()
def test_the_network_is_the_published_one() -> None:
    bidaf, batch = tiny().eval(), make_batch()
    states, read = bidaf(batch), bidaf.words(batch)
    for highway in bidaf.highways:
        assert isinstance(highway, Highway)
        gate = torch.sigmoid(highway.carry(read))
        read = gate * torch.relu(highway.transform(read)) + (1 - gate) * read
    for row, (first, second) in enumerate(LENGTHS):
        query, text = read[row, :first], read[row, first : first + second]
        h, u = (run_lstms(bidaf.contextual, each) for each in (torch.cat([query[:1], text]), query))
        flow = attention_flow(h, u, bidaf.flow.similarity.weight[0])
        modelled = run_lstms(bidaf.modelling, flow)
        expected = torch.cat([flow, modelled, run_lstms(bidaf.ending, modelled)], dim=1)
        hidden = states.hidden_states[row]
        torch.testing.assert_close(hidden[first : first + second], expected[1:], rtol=0, atol=1e-5)
        torch.testing.assert_close(hidden[0], expected[0], rtol=0, atol=1e-5)
        torch.testing.assert_close(states.pooled[row], expected[0], rtol=0, atol=1e-5)
        assert not hidden[1:first].any(), "words of the query have no states"
        assert not hidden[first + second :].any()


def test_the_defaults_have_the_published_sizes() -> None:
    """[G; M; M2] of 800, 200 and 200; word vectors of size 1,224 with ELMo, whose own parameters are not counted."""
    with torch.device("meta"):
        bidaf = Bidaf(BidafConfig(words=WordReaderConfig(vocab_size=7, word_length=7, vector_size=1224)))
    assert bidaf.hidden_size == 1200
    count = sum(weight.numel() for name, weight in bidaf.named_parameters() if not name.startswith("words."))
    highways = 2 * 2 * (1224 + 1) * 1224
    inputs = (1224, 800, 200, 200)  # contextual, modelling twice, ending
    assert count == highways + 600 + sum(2 * 4 * 100 * (width + 100 + 2) for width in inputs)


def test_every_word_of_the_context_reads_the_query() -> None:
    bidaf, batch = tiny().eval(), make_batch()
    before = bidaf(batch).hidden_states
    batch.input_ids[0, 2] = 33  # in the query
    after = bidaf(batch).hidden_states
    assert (after[0, 5:9] != before[0, 5:9]).any(dim=1).all()
    assert (after[0, 0] != before[0, 0]).any()
    assert torch.equal(after[1:], before[1:])


def test_a_single_text_is_encoded() -> None:
    states = tiny().eval()(make_batch(((5, 0), (3, 0))))
    assert states.hidden_states.isfinite().all()
    assert states.pooled.any(dim=1).all()


def test_reset_changes_all_randomly_initialised_parameters() -> None:
    bidaf = tiny()
    before = {name: weight.clone() for name, weight in bidaf.named_parameters() if not name.startswith("words.")}
    bidaf.reset_untrained_parameters()
    same = {name for name, weight in before.items() if torch.equal(weight, bidaf.get_parameter(name))}
    assert same == {"highways.0.carry.bias", "highways.1.carry.bias"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 0}, "width is 0; it must be from 1 to"),
        ({"num_modelling_layers": 0}, "num_modelling_layers is 0; it must be from 1 to"),
        ({"num_highways": -1}, "num_highways is -1; it must be from 0 to"),
        ({"dropout": -0.1}, "dropout is -0.1; it must be at least 0 and below 1."),
    ],
)
def test_invalid_configurations_are_refused(changes: dict[str, float], message: str) -> None:
    with pytest.raises(BertkitError, match=message):
        BidafConfig(words=WordReaderConfig(vocab_size=7, word_length=7, vector_size=5), **changes)  # type: ignore[arg-type]


def test_it_overfits_a_few_questions(data_folder: Path) -> None:
    """As in SQuAD 2.0: answers are spans of the context, and a question about another context has none."""
    task = replace(v2, max_length=99).with_files(train=[data_folder / "squad" / "tydiqa-en-train-v1.1.json"])
    examples = [each for each in task.examples("train") if len(each.context) < 250][:3]
    examples.append(replace(examples[0], context=examples[2].context, answers=(), impossible=True))
    tokenizer = words.train(
        [text for each in examples for text in (each.question, each.context)], word_length=WORD_LENGTH
    )
    features = [task.encode(each, tokenizer) for each in examples]
    assert all(len(windows) == 1 for windows in features)
    batch = collate([window for windows in features for window in windows], pad_id=tokenizer.pad_id)
    reader = WordReaderConfig(vocab_size=tokenizer.vocab_size, word_length=7, train_vectors=True, vector_size=20)
    bidaf = Bidaf(BidafConfig(words=reader, width=20, dropout=0.0))
    outputs = overfit(task, bidaf, batch, steps=30, lr=1e-2)
    for row, (example, windows) in enumerate(zip(examples, features, strict=True)):
        logits = {name: scores[row].detach().numpy() for name, scores in outputs.items()}
        assert task.decode(example, windows, [logits]).text in (example.texts or ("",))
