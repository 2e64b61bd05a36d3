"""CoNLL-2003, on its real files."""

from __future__ import annotations

from pathlib import Path

from tests.task_types.small_sentences import TASK, answer_with_gold
from tests.task_types.small_sentences import task as task

from bertkit.contracts import Tokenizer


def test_the_real_files(data_folder: Path, tokenizer: Tokenizer) -> None:
    task = TASK.at(data_folder / "conll2003")
    examples = task.examples("dev")
    assert len(examples) == 3250
    for example in examples[:99]:
        assert answer_with_gold(task, example, tokenizer) == example.label
