"""A vocabulary of a few sentences, a network of a few numbers, and two tasks for it."""

from __future__ import annotations

import pytest
from tests.tiny_bert import SENTENCES, make_encoder, make_tokenizer

from bertkit.encoders.bert import Bert
from bertkit.model import Model
from bertkit.task_types import TextClassificationTask, TextExample
from bertkit.text.wordpiece import WordPiece


@pytest.fixture(scope="session")
def tokenizer() -> WordPiece:
    return make_tokenizer()


@pytest.fixture
def encoder(tokenizer: WordPiece) -> Bert:
    return make_encoder(tokenizer)


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
