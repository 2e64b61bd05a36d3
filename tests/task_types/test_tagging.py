"""What every task that tags words must do, on small files in the columns of CoNLL."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.task_types.small_sentences import TASK
from tests.task_types.small_sentences import task as task

from bertkit.batch import IGNORE
from bertkit.checkpoint.save_model import save_model
from bertkit.contracts import Tokenizer
from bertkit.data.features import collate
from bertkit.encoders import esim
from bertkit.encoders.bert import Bert, BertConfig
from bertkit.errors import BertkitError
from bertkit.inference.pipeline import load
from bertkit.metrics.classification import ClassScore
from bertkit.model import Model
from bertkit.task_types import TaggingTask
from bertkit.text.wordpiece import WordPiece


def test_gold_scores_perfectly(task: TaggingTask, tokenizer: Tokenizer) -> None:
    examples = task.examples("dev")
    features = [task.encode(example, tokenizer) for example in examples]
    outputs = []
    for (feature,) in features:
        tags = np.asarray(feature.labels["tags"])
        outputs.append([{"logits": 9.0 * np.eye(9)[np.where(tags == IGNORE, 0, tags)]}])
    predictions = [task.decode(*each) for each in zip(examples, features, outputs, strict=True)]
    scores = task.score(examples, predictions)
    assert scores == {"f1": 1.0, "precision": 1.0, "recall": 1.0}
    assert task.score_parts(examples, predictions) == [
        ClassScore("LOC", 1.0, 1.0, 1.0, support=2),
        ClassScore("PER", 1.0, 1.0, 1.0, support=1),
    ]
    described = task.describe(examples[0], predictions[0])
    assert [(each["type"], each["text"], each["start"], each["end"]) for each in described["entities"]] == [
        ("PER", "Seven rivers", 0, 12)
    ]
    with pytest.raises(BertkitError, match="no tags"):
        task.score([replace(examples[0], label=None)], predictions[:1])


def test_gradients_reach_every_parameter_of_the_head(task: TaggingTask, tokenizer: Tokenizer) -> None:
    config = BertConfig(
        vocab_size=tokenizer.vocab_size, hidden_size=24, num_layers=1, num_heads=2, intermediate_size=37
    )
    model = Model(encoder := Bert(config), task.objectives(encoder))
    features = [feature for example in task.examples("train") for feature in task.encode(example, tokenizer)]
    batch = collate(features, pad_id=0)
    (head,) = model.objectives.values()
    head.loss(model(batch)["tags"], batch)["tags"].sum.backward()  # type: ignore[operator]
    assert all(weight.grad is not None and weight.grad.any() for weight in head.parameters())


def test_a_model_tags_text_and_words(tmp_path: Path) -> None:
    words = ["seven", "rivers", "ran", "."]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    tokenizer = WordPiece.load(tmp_path / "vocab.txt")
    config = BertConfig(vocab_size=9, hidden_size=24, num_layers=1, num_heads=2, intermediate_size=37)
    task = TaggingTask(name="t", labels=("O", "B-A", "I-A"))
    model = Model(encoder := Bert(config), task.objectives(encoder))
    model.objectives["tags"].classifier.bias.data[1] = 99.0  # type: ignore[union-attr, operator]
    save_model(tmp_path / "m", model, tokenizer, metadata={"task": task.record()})
    found = load(tmp_path / "m").tag("seven rivers.")
    assert [(each.type, each.text, each.start, each.end) for each in found] == [
        ("A", "seven", 0, 5),
        ("A", "rivers", 6, 12),
        ("A", ".", 12, 13),
    ]
    assert [each.text for each in load(tmp_path / "m").tag(["rivers", "ran"])] == ["rivers", "ran"]
    assert all(0.99 < each.score <= 1 for each in found)
    (tagged,) = load(tmp_path / "m").predict(["seven rivers."])
    assert tagged.to_dict()["entities"] == [each.to_dict() for each in found]


def test_word_encoders_have_no_features_for_tagging() -> None:
    with pytest.raises(BertkitError, match=r"Esim has no layers of one width: leave out task\.features\."):
        replace(TASK, features="last").objectives(esim.tiny())
