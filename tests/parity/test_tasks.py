"""Folders that transformers saved for a task: ``bertkit.load`` predicts the same, to 1e-5."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

import bertkit
from bertkit.errors import BertkitError
from bertkit.inference.pipeline import Pipeline, load

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import transformers

TOLERANCE = 1e-5
WORDS = ["seven", "wide", "rivers", "ran", "slowly", "past", "the", "mill", "ada", "##s", "in", "?", "."]
POSITIONS = 41


def save(folder: Path, kind: str, **more: Any) -> tuple[Pipeline, Any, Any]:
    """Our pipeline, the model and the tokenizer of transformers, all loaded from one folder that transformers wrote."""
    folder.mkdir()
    subwords = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("".join(subword + "\n" for subword in subwords), encoding="utf-8")
    transformers.BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    shape = transformers.BertConfig(
        vocab_size=len(subwords),
        hidden_size=28,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=37,
        max_position_embeddings=POSITIONS,
        initializer_range=0.9,
        **more,
    )
    model = getattr(transformers, kind)(shape).eval()
    model.save_pretrained(folder)
    return load(folder), model, transformers.AutoTokenizer.from_pretrained(folder)


def ask(model: Any, inputs: Any) -> Any:
    with torch.no_grad():
        return model(**inputs)


def test_multiple_choice(tmp_path: Path) -> None:
    ours, model, tokenizer = save(tmp_path / "m", "BertForMultipleChoice")
    prompt, choices = "seven rivers ran", ["past the mill.", "slowly", "in the wide mill?"]
    inputs = tokenizer([prompt] * 3, choices, padding=True, return_tensors="pt")
    expected = ask(model, {name: each[None] for name, each in inputs.items()}).logits[0].softmax(-1)
    found = ours.choose(prompt, choices)
    assert found.scores == pytest.approx(expected.tolist(), abs=TOLERANCE)
    assert (found.label, found.text) == (int(expected.argmax()), choices[int(expected.argmax())])


def test_tags_have_the_names_of_the_config(tmp_path: Path) -> None:
    names = {0: "B-LOC", 1: "O", 2: "I-LOC", 3: "PER"}
    ids = {name: number for number, name in names.items()}
    ours, model, tokenizer = save(tmp_path / "m", "BertForTokenClassification", id2label=names, label2id=ids)
    words = ["Seven", "rivers", "ran", "past", "adas", "mill", "."]
    inputs = tokenizer([words], is_split_into_words=True, return_tensors="pt")
    probabilities = ask(model, inputs).logits[0].softmax(-1)
    first_tokens = [inputs.word_ids(0).index(word) for word in range(len(words))]
    (prediction,) = ours.stream([ours.task.reader.read_line("1", " ".join(words))])
    assert list(prediction.label) == [names[int(probabilities[token].argmax())] for token in first_tokens]
    assert list(prediction.probabilities) == pytest.approx(
        [float(probabilities[token].max()) for token in first_tokens], abs=TOLERANCE
    )
    assert {entity.type for entity in prediction.entities} <= {"LOC", "PER"}
    assert len({round(each, 4) for each in prediction.probabilities}) > 3, "words have different probabilities"


def test_answers_to_questions(tmp_path: Path) -> None:
    ours, model, tokenizer = save(tmp_path / "m", "BertForQuestionAnswering")
    question, context = "seven?", "The wide rivers ran slowly past the mill in the rivers."
    inputs = tokenizer(question, context, return_offsets_mapping=True, return_tensors="pt")
    offsets = inputs.pop("offset_mapping")[0].tolist()
    output = ask(model, inputs)
    first, last = inputs["input_ids"][0].tolist().index(3) + 1, len(offsets) - 1
    start, end = output.start_logits[0, first:last], output.end_logits[0, first:last]
    sums = (start[:, None] + end).triu()
    sums[torch.ones_like(sums).tril(-1).bool()] = -torch.inf
    best = divmod(int(sums.argmax()), len(end))
    found = ours.answer(question, context)
    assert (found.start, found.end) == (offsets[first + best[0]][0], offsets[first + best[1]][1])
    assert found.text == context[found.start : found.end]
    ratio = found.n_best[1].probability / found.n_best[0].probability
    assert ratio == pytest.approx(float((sums.flatten().sort().values[-2] - sums.max()).exp()), abs=TOLERANCE)


def test_classes_without_names_in_the_config(tmp_path: Path) -> None:
    ours, model, tokenizer = save(tmp_path / "m", "BertForSequenceClassification")
    assert "id2label" not in (tmp_path / "m" / "config.json").read_text(encoding="utf-8")
    expected = ask(model, tokenizer("seven rivers", return_tensors="pt")).logits[0].softmax(-1).tolist()
    found = ours.classify("seven rivers")
    assert list(found.scores) == ["LABEL_0", "LABEL_1"]
    assert list(found.scores.values()) == pytest.approx(expected, abs=TOLERANCE)


@pytest.mark.parametrize(
    ("kind", "file", "rows"),
    [
        ("BertForSequenceClassification", "t.csv", "text,label\nseven rivers,LABEL_1\nthe mill,LABEL_0\n"),
        ("BertForMultipleChoice", "t.csv", "prompt,A,B,label\nseven,ran,past,0\nthe mill,ran,past,1\n"),
        ("BertForQuestionAnswering", "t.csv", "question,context,answer\nseven?,the mill ran,mill\nran?,the,the\n"),
        ("BertForTokenClassification", "t.conll", "seven B-A\nrivers O\n\nran B-A\n"),
    ],
)
def test_a_file_is_scored_with_texts_truncated_to_the_positions_of_the_model(
    tmp_path: Path, kind: str, file: str, rows: str
) -> None:
    names = {0: "O", 1: "B-A"} if "Token" in kind else None
    more = {"id2label": names, "label2id": {"O": 0, "B-A": 1}} if names else {}
    ours, _, _ = save(tmp_path / "m", kind, **more)
    with pytest.raises(BertkitError, match=r"m has no files of its own. Name a file with labels"):
        ours.task.examples("dev")
    (tmp_path / file).write_text(rows, encoding="utf-8")
    task = ours.task.with_files(dev=[tmp_path / file])
    examples = task.examples("dev")
    assert len(examples) == 2
    assert 0 <= task.score(examples, list(ours.stream(examples)))[task.metric] <= 1
    (tmp_path / file).write_text(rows.replace("the mill", "the mill " * 99, 1), encoding="utf-8")
    if "Token" not in kind:
        assert len(list(ours.stream(ours.task.reader.read(tmp_path / file)))) == 2


@pytest.mark.parametrize("columns", ["text,pair", "premise,hypothesis", "a,b"])
def test_a_classifier_of_pairs_reads_both_texts(tmp_path: Path, columns: str) -> None:
    ours, model, tokenizer = save(tmp_path / "m", "BertForSequenceClassification")
    pairs = [("seven rivers ran", "slowly"), ("the mill", "past the wide rivers ?")]
    inputs = tokenizer([a for a, _ in pairs], [b for _, b in pairs], padding=True, return_tensors="pt")
    expected = ask(model, inputs).logits.softmax(-1).max(-1).values.tolist()
    table = tmp_path / "in.csv"
    table.write_text("\n".join([columns, *(f"{a},{b}" for a, b in pairs)]) + "\n", encoding="utf-8")
    first, second = columns.split(",")
    named: dict[str, Any] = {"text": first, "pair": second} if columns == "a,b" else {}
    bertkit.predict(tmp_path / "m", table, output=tmp_path / "out.jsonl", progress="quiet", **named)
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [each["probability"] for each in records] == pytest.approx(expected, abs=TOLERANCE)
    found = [max(each.scores.values()) for each in ours.classify(list(pairs))]
    assert found == pytest.approx(expected, abs=TOLERANCE)


def test_a_classifier_whose_labels_are_those_of_pairs_refuses_one_text(tmp_path: Path) -> None:
    names = {0: "ENTAILMENT", 1: "neutral", 2: "contradiction"}
    ids = {name: number for number, name in names.items()}
    ours, _, _ = save(tmp_path / "m", "BertForSequenceClassification", id2label=names, label2id=ids)
    with pytest.raises(BertkitError, match="an example of m is two texts; example 0 has one"):
        ours.classify("the mill")
    assert ours.classify("the mill", "seven rivers").label in ids
