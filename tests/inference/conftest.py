"""A vocabulary of a few sentences, a network of a few numbers, and two tasks for it."""

from __future__ import annotations

import pytest

from bertkit.encoders.bert import Bert, BertConfig
from bertkit.model import Model
from bertkit.task_types import TextClassificationTask, TextExample
from bertkit.text.wordpiece import WordPiece, train

SENTENCES = [
    "seven wide rivers ran slowly past the old stone mill",
    "the miller counted seven old coins by the river",
    "past the mill the river ran wide and slowly",
    "nobody counted the stones of the old river mill",
]


@pytest.fixture(scope="session")
def tokenizer() -> WordPiece:
    return train(SENTENCES * 5, vocab_size=99)


@pytest.fixture
def encoder(tokenizer: WordPiece) -> Bert:
    shape = BertConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=14,
        num_layers=2,
        num_heads=2,
        intermediate_size=37,
        max_positions=41,
        initializer_range=0.5,
    )
    return Bert(shape)


@pytest.fixture
def task() -> TextClassificationTask:
    return TextClassificationTask(name="files:t.csv", metric="accuracy", labels=("dry", "wet", "odd"), max_length=33)


@pytest.fixture
def model(encoder: Bert, task: TextClassificationTask) -> Model:
    return Model(encoder, task.objectives(encoder))


@pytest.fixture
def examples() -> list[TextExample]:
    """Thirty-seven, of all lengths, some too long for the task."""
    texts = [" ".join(SENTENCES[place % 4].split()[place % 3 :] * (1 + place % 5)) for place in range(37)]
    return [TextExample(str(place), text) for place, text in enumerate(texts)]
