"""What every task that tags words must do, on small files in the columns of CoNLL."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bertkit import lookup as names
from bertkit.batch import IGNORE
from bertkit.checkpoint.model_folder import save_model
from bertkit.contracts import Tokenizer
from bertkit.data.features import collate
from bertkit.encoders import esim
from bertkit.encoders.bert import Bert, BertConfig
from bertkit.errors import BertkitError
from bertkit.inference.pipeline import load
from bertkit.metrics.classification import ClassScore
from bertkit.model import Model
from bertkit.task_types import TagExample, TaggingTask, from_record
from bertkit.task_types.user_tables import guess
from bertkit.text.wordpiece import WordPiece

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


def test_columns_become_sentences_in_iob2(task: TaggingTask) -> None:
    first, second, third = task.examples("train")
    assert first.words == ("Seven", "rivers", "ran")
    assert first.label == ("B-PER", "I-PER", "O")
    assert second.label == ("B-LOC", "B-LOC")
    assert [each.id for each in (first, second, third)] == ["3", "7", "12"]
    assert [len(list(task.reader.read(task.files.paths("", "dev")[0]))), from_record(task.record())] == [3, task]


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


def test_context_is_that_of_the_document(task: TaggingTask, tokenizer: Tokenizer) -> None:
    task = replace(task, context=True, max_length=37)
    first, second, third = task.examples("train")
    assert (first.before, first.after) == ((), ("old", "mill"))
    assert (second.before, second.after, third.before) == (("Seven", "rivers", "ran"), (), ())
    (feature,) = task.encode(second, tokenizer)
    (alone,) = replace(task, context=False).encode(replace(second, before=()), tokenizer)
    assert len(feature) > len(alone)
    assert (np.asarray(feature.labels["tags"]) != IGNORE).sum() == 2
    assert answer_with_gold(task, second, tokenizer) == second.label


@pytest.mark.parametrize("max_length", [3, 13, 512])
def test_every_word_of_a_long_sentence_is_answered_once(tokenizer: Tokenizer, max_length: int) -> None:
    task = replace(TASK, max_length=max_length)
    count = 5000
    tags = tuple(np.random.default_rng(7).choice(["O", "B-PER", "B-LOC"], size=count).tolist())
    example = TagExample("1", tuple(f"w{n % 7}" for n in range(count)), tags)
    features = task.encode(example, tokenizer)
    assert max(map(len, features)) <= max_length
    assert sum((np.asarray(each.labels["tags"]) != IGNORE).sum() for each in features) == count
    assert answer_with_gold(task, example, tokenizer) == tags


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


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a O\nb x O\n", "line 2: 3 columns, and 2"),
        ("a O\nb\n", "line 2: 1 column, and 2 in the lines before. Mend the line"),
        ("a O\nb PER\n", 'line 2: "PER" is no tag'),
        ("a O\nb I-PRE\n", 'line 2: unknown tag "B-PRE"'),
    ],
)
def test_a_faulty_line_is_named(task: TaggingTask, tmp_path: Path, rows: str, message: str) -> None:
    (tmp_path / "eng.train").write_text(rows, encoding="utf-8")
    with pytest.raises(BertkitError, match=message):
        task.examples("train")


def test_a_file_called_conll_is_told_its_line_whatever_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "t.conll").write_text("a B-\nb O\n", encoding="utf-8")
    with pytest.raises(BertkitError, match=r't\.conll, line 1: "B-" is no tag'):
        guess(tmp_path / "t.conll")


def test_ill_formed_tags_and_unreadable_words_are_counted(task: TaggingTask, tmp_path: Path) -> None:
    rows = "a B-PER\nb I-PER\nc O\nd I-PER\n\u200b O\n"
    (tmp_path / "eng.train").write_text(rows, encoding="utf-8")
    notes = " ".join(task.reader.notes())
    assert "1 tags of train are ill-formed" in notes
    assert "1 words of train have no character" in notes
    assert "of dev" not in notes


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    own = tmp_path / "my.conll"
    own.write_text("".join(f"w{n} S-ANIMAL\nx{n} O\n\n" for n in range(37)), encoding="utf-8")
    found = guess(own)
    assert isinstance(found.task, TaggingTask)
    assert found.task.labels == ("O", "B-ANIMAL", "I-ANIMAL")
    assert "37 sentences" in found.sentence
    assert len(found.task.examples("dev")) > 0
    assert "held out" in found.task.reader.notes()[0]


def test_a_model_tags_text_and_words(tmp_path: Path) -> None:
    words = ["seven", "rivers", "ran", "."]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    pieces = WordPiece.load(tmp_path / "vocab.txt")
    config = BertConfig(vocab_size=9, hidden_size=24, num_layers=1, num_heads=2, intermediate_size=37)
    task = TaggingTask(name="t", labels=("O", "B-A", "I-A"))
    model = Model(encoder := Bert(config), task.objectives(encoder))
    model.objectives["tags"].classifier.bias.data[1] = 99.0  # type: ignore[union-attr, operator]
    save_model(tmp_path / "m", model, pieces, metadata={"task": task.record()})
    found = load(tmp_path / "m").tag("seven rivers.")
    assert [(each.type, each.text, each.start, each.end) for each in found] == [
        ("A", "seven", 0, 5),
        ("A", "rivers", 6, 12),
        ("A", ".", 12, 13),
    ]
    assert [each.text for each in load(tmp_path / "m").tag(["rivers", "ran"])] == ["rivers", "ran"]
    assert all(0.99 < each.score <= 1 for each in found)


def test_the_real_files(data_folder: Path, tokenizer: Tokenizer) -> None:
    task = TASK.at(data_folder / "conll2003")
    examples = task.examples("dev")
    assert len(examples) == 3250
    for example in examples[:99]:
        assert answer_with_gold(task, example, tokenizer) == example.label


def test_features_are_not_those_of_a_network_of_words() -> None:
    with pytest.raises(BertkitError, match=r"Esim has no layers of one width: leave out task\.features\."):
        replace(TASK, features="last").objectives(esim.tiny())
