"""Three tagged sentences in the layout of CoNLL-2003."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bertkit import lookup as names
from bertkit.batch import IGNORE
from bertkit.contracts import Tokenizer
from bertkit.task_types import TagExample, TaggingTask

TASK: TaggingTask = names.find("tasks", "conll2003", TaggingTask)


ROWS = """-DOCSTART- -X- O O

Seven NNP I-NP I-PER
rivers NNS I-NP I-PER
ran VBD I-VP O

old JJ I-NP I-LOC
mill NN I-NP B-LOC

-DOCSTART- -X- O O

slowly RB O O
"""


@pytest.fixture
def task(tmp_path: Path) -> TaggingTask:
    for split in TASK.files.splits.values():
        (tmp_path / split.files[0]).write_text(ROWS, encoding="utf-8")
    return TASK.at(tmp_path)


def answer_with_gold(task: TaggingTask, example: TagExample, tokenizer: Tokenizer) -> tuple[str, ...]:
    assert example.label is not None
    features = task.encode(example, tokenizer)
    outputs = []
    for feature in features:
        tags = np.asarray(feature.labels["tags"])
        outputs.append({"logits": 9.0 * np.eye(len(task.labels))[np.where(tags == IGNORE, 0, tags)]})
    return task.decode(example, features, outputs).label
