from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import pytest
import torch
from tests.formats.memory_tables import frame
from tests.tiny_bert import SENTENCES

from bertkit.checkpoint.save_model import save_model
from bertkit.encoders.bert import Bert
from bertkit.errors import BertkitError
from bertkit.inference.pipeline import Pipeline, load
from bertkit.inference.predict import predict
from bertkit.inference.runtime import Backend, Runtime, possible_backends
from bertkit.machine.precision import Precision
from bertkit.model import Model
from bertkit.pretraining.task import PretrainingTask
from bertkit.task_files.files import Columns, Split, TaskFiles
from bertkit.task_types import (
    FileTask,
    Prediction,
    QuestionAnsweringTask,
    RegressionTask,
    TaggingTask,
    TextClassificationTask,
    TextExample,
)
from bertkit.task_types.regression import Numbers
from bertkit.text.wordpiece import WordPiece

PRECISIONS: tuple[Precision, Precision] = ("float32", "bfloat16")


def save(folder: Path, encoder: Bert, task: FileTask, tokenizer: WordPiece) -> Pipeline:
    model = Model(encoder, task.objectives(encoder))
    save_model(folder / "model", model, tokenizer, metadata={"kind": "finetune", "task": task.record()})
    return load(folder)


def scores(predictions: list[Prediction]) -> list[float]:
    return [score for each in predictions for score in each.scores.values()]


def test_predictions_are_those_of_the_model_before_it_was_saved(
    tmp_path: Path, model: Model, task: TextClassificationTask, examples: list[TextExample], tokenizer: WordPiece
) -> None:
    expected = predict(model, task, examples, tokenizer)
    save_model(tmp_path / "model", model, tokenizer, metadata={"task": task.record()})
    pipeline = load(tmp_path)
    assert pipeline.task == task
    found = pipeline.classify([example.first for example in examples])
    assert [each.label for each in found] == [each.label for each in expected]
    assert scores(found) == pytest.approx(scores(expected), abs=1e-6)
    streamed = list(pipeline.stream(iter(examples), batch_size=5))
    assert [each.label for each in streamed] == [each.label for each in expected]


def test_the_precision_is_float32_unless_the_user_or_the_config_says_otherwise(
    tmp_path: Path,
    model: Model,
    task: TextClassificationTask,
    examples: list[TextExample],
    tokenizer: WordPiece,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bertkit.machine.precision.measure_matmul_speed", lambda device: pytest.fail("measured"))
    save_model(tmp_path / "model", model, tokenizer, metadata={"task": task.record()})
    texts = [example.first for example in examples]
    exact, rounded = (predict(model, task, examples, tokenizer, precision=each) for each in PRECISIONS)
    assert scores(load(tmp_path).classify(texts)) == pytest.approx(scores(exact), abs=1e-6)
    bfloat16 = load(tmp_path, precision="bfloat16")
    assert scores(bfloat16.classify(texts)) == pytest.approx(scores(rounded), abs=0.02)
    assert scores(bfloat16.classify(texts)) != pytest.approx(scores(exact), abs=1e-4)
    (tmp_path / "model" / "bertkit.json").unlink()
    for key in ("dtype", "torch_dtype"):
        config = json.loads((tmp_path / "model" / "config.json").read_text(encoding="utf-8"))
        kept = {name: value for name, value in config.items() if not name.endswith("dtype")}
        (tmp_path / "model" / "config.json").write_text(json.dumps({**kept, key: "bfloat16"}), encoding="utf-8")
        assert load(tmp_path).precision == "bfloat16"
        assert load(tmp_path, precision="float32").precision == "float32"
    unknown: Any = "float16"
    with pytest.raises((BertkitError, TypeError), match="float16"):  # a TypeError where types are checked at run time
        load(tmp_path, precision=unknown)


def test_one_text_gives_one_answer(
    tmp_path: Path, encoder: Bert, task: TextClassificationTask, tokenizer: WordPiece
) -> None:
    pipeline = save(tmp_path, encoder, task, tokenizer)
    answer = pipeline.classify("the river ran")
    assert isinstance(answer, Prediction)
    assert list(answer.scores) == ["dry", "wet", "odd"]
    assert answer.label == max(answer.scores, key=lambda label: answer.scores[label])
    assert sum(answer.scores.values()) == pytest.approx(1.0)


def test_a_model_prints_what_it_does(
    tmp_path: Path, encoder: Bert, task: TextClassificationTask, tokenizer: WordPiece
) -> None:
    pipeline = save(tmp_path, encoder, task, tokenizer)
    assert repr(pipeline) == f"Pipeline({tmp_path}/model: {task.name}, classify as dry, wet, odd; float32 on cpu)"
    save_model(tmp_path / "words" / "model", Model(encoder, {}), tokenizer, metadata={"kind": "pretrain"})
    assert repr(load(tmp_path / "words")).endswith("model: not fine-tuned; float32 on cpu)")


def test_a_model_is_found_from_another_working_directory(
    tmp_path: Path, encoder: Bert, task: TextClassificationTask, tokenizer: WordPiece, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = save(tmp_path, encoder, task, tokenizer).logits(["the river ran"])
    monkeypatch.chdir(tmp_path)
    pipeline = load("model")  # whose weights are not read yet
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    np.testing.assert_array_equal(pipeline.logits(["the river ran"]), expected)


def test_members_of_an_ensemble_may_have_different_heads(
    tmp_path: Path, encoder: Bert, task: TextClassificationTask, tokenizer: WordPiece
) -> None:
    tasks = [task, replace(task, pooling="mean")]
    alone = [save(tmp_path / each.pooling, encoder, each, tokenizer).classify("the river") for each in tasks]
    together = load(*(tmp_path / each.pooling for each in tasks)).classify("the river")
    assert alone[0].scores != alone[1].scores
    assert sum(together.scores.values()) == pytest.approx(1.0)


def test_members_of_an_ensemble_must_read_the_same_tokens(
    tmp_path: Path, encoder: Bert, task: TextClassificationTask, tokenizer: WordPiece
) -> None:
    for length in (9, 13):
        save(tmp_path / str(length), encoder, replace(task, max_length=length), tokenizer)
    with pytest.raises(BertkitError, match=r"has task\.max_length=13 and .* 9: they read different tokens"):
        load(tmp_path / "9", tmp_path / "13")


def test_taggers_of_an_ensemble_must_read_the_same_words(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    """A CRF and the feature-based BiLSTM read the first token of each word, the usual head reads all tokens."""
    tags = TaggingTask(name="tags", labels=("O", "B-x", "I-x"), max_length=13)
    for name, task in (("plain", tags), ("crf", replace(tags, crf=True)), ("last", replace(tags, features="last"))):
        save(tmp_path / name, encoder, task, tokenizer)
    for one, other in (("plain", "crf"), ("crf", "plain"), ("plain", "last")):
        with pytest.raises(BertkitError, match=r"has task\.(crf|features)=.*: they read different tokens"):
            load(tmp_path / one, tmp_path / other)


def test_members_of_an_ensemble_must_read_as_many_texts_and_give_numbers_on_one_scale(
    tmp_path: Path, encoder: Bert, task: TextClassificationTask, tokenizer: WordPiece
) -> None:
    for pair in (False, True):
        save(tmp_path / str(pair), encoder, replace(task, pair=pair), tokenizer)
    with pytest.raises(BertkitError, match=r"has task\.pair=True and .* False: they read different tokens"):
        load(tmp_path / "False", tmp_path / "True")
    for unit in (1.0, 2.0):
        numbers = RegressionTask(name="years", metric="pearson", max_length=13, numbers=Numbers(unit=unit))
        save(tmp_path / str(unit), encoder, numbers, tokenizer)
    with pytest.raises(BertkitError, match="give numbers on different scales"):
        load(tmp_path / "1.0", tmp_path / "2.0")


def test_members_of_an_ensemble_must_have_the_same_labels(
    tmp_path: Path, encoder: Bert, task: TextClassificationTask, tokenizer: WordPiece
) -> None:
    for last in ("odd", "late"):
        save(tmp_path / last, encoder, replace(task, labels=("dry", "wet", last)), tokenizer)
    with pytest.raises(
        BertkitError, match=r"has the labels dry, wet, late and .* dry, wet, odd: they cannot be an ens"
    ):
        load(tmp_path / "odd", tmp_path / "late")


def test_pairs_are_tuples(tmp_path: Path, encoder: Bert, task: TextClassificationTask, tokenizer: WordPiece) -> None:
    pipeline = save(tmp_path, encoder, replace(task, pair=True), tokenizer)
    (listed,) = pipeline.classify([("the river", "the mill")])
    assert pipeline.classify("the river", "the mill") == listed
    with pytest.raises(BertkitError, match="is two texts; example 0 has one"):
        pipeline.classify("the river")


def test_a_pair_is_refused_by_a_task_on_one_text(
    tmp_path: Path, encoder: Bert, task: TextClassificationTask, tokenizer: WordPiece
) -> None:
    with pytest.raises(BertkitError, match="is one text; example 0 has two"):
        save(tmp_path, encoder, task, tokenizer).classify([("the river", "the mill")])


def test_a_number_is_predicted_and_not_classified(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    pipeline = save(tmp_path, encoder, RegressionTask(name="files:n.csv", metric="pearson", max_length=33), tokenizer)
    (answer,) = pipeline.predict(["the river"])
    assert isinstance(answer.label, float)
    with pytest.raises(BertkitError, match="cannot classify texts: use predict"):
        pipeline.classify("the river")


def test_a_pre_trained_model_fills_and_does_not_classify(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    model = Model(encoder, PretrainingTask().build_objectives(encoder))
    save_model(tmp_path / "model", model, tokenizer, metadata={"kind": "pretrain"})
    pipeline = load(tmp_path)
    (blank,) = pipeline.fill("the [MASK] ran", top_k=3)
    assert len(blank) == 3
    with pytest.raises(BertkitError, match=r"is not fine-tuned for a task. First: bertkit finetune TASK --model"):
        pipeline.classify("the river")


def test_columns_of_a_frame_may_be_numbers_and_it_may_be_empty(workspace: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pipeline = load(workspace / "tuned")
    texts = ["the river ran", "a mill"]
    frame = pandas.DataFrame({0: texts, 1: ["a", "b"]})
    found = pipeline.predict(frame, text=0)
    assert [each.label for each in found] == [each.label for each in pipeline.predict(texts)]
    assert list(pipeline.predict(frame.head(0))) == []
    wrong: Any = ["review"]
    with pytest.raises((BertkitError, TypeError), match="review"):  # a TypeError where types are checked at run time
        pipeline.predict(frame, text=wrong)


def test_a_model_without_its_masked_lm_head_does_not_fill(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    save_model(tmp_path / "model", Model(encoder, {}), tokenizer, metadata={"kind": "pretrain"})
    with pytest.raises(BertkitError, match="was published without the masked-LM head that filling in words needs"):
        load(tmp_path).fill("the [MASK] ran")
    save_model(tmp_path / "other", Model(encoder, {}), tokenizer, metadata={"kind": "pretrain", "objectives": ["nsp"]})
    with pytest.raises(BertkitError, match="was pre-trained for nsp alone, without the masked-LM head"):
        load(tmp_path / "other").fill("the [MASK] ran")


def test_a_fine_tuned_model_does_not_fill(
    tmp_path: Path, encoder: Bert, task: TextClassificationTask, tokenizer: WordPiece
) -> None:
    with pytest.raises(BertkitError, match=r"is fine-tuned for files:t.csv; \[MASK\] needs a pre-trained model"):
        save(tmp_path, encoder, task, tokenizer).fill("the [MASK] ran")


def test_a_missing_model_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BertkitError, match="no model at"):
        load(tmp_path / "nowhere")
    nothing: Any = None
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # users' calls are not checked
    with pytest.raises(BertkitError, match="path is ''; it must be the path of a model's folder"):
        load("")
    with pytest.raises(BertkitError, match="path is None; it must be the path of a model's folder"):
        load(nothing)


def test_a_single_text_is_not_a_list(tmp_path: Path, encoder: Bert, task: FileTask, tokenizer: WordPiece) -> None:
    pipeline = save(tmp_path, encoder, task, tokenizer)
    with pytest.raises(BertkitError, match="texts is one text"):
        pipeline.predict("hello")


def test_a_table_gives_the_predictions_of_its_rows(
    tmp_path: Path, encoder: Bert, task: TextClassificationTask, tokenizer: WordPiece, examples: list[TextExample]
) -> None:
    columns = Columns(first="review", label="label")
    known = replace(task, files=TaskFiles(splits={"train": Split(files=(), columns=columns)}))
    pipeline = save(tmp_path, encoder, known, tokenizer)
    texts = [example.first for example in examples[:7]]
    expected = scores(pipeline.predict(texts))
    assert scores(pipeline.predict(frame(nr=range(7), review=texts))) == pytest.approx(expected, abs=1e-6)
    assert scores(pipeline.classify(frame(comment=texts))) == pytest.approx(expected, abs=1e-6)
    assert scores(pipeline.predict(frame(comment=texts)["comment"])) == pytest.approx(expected, abs=1e-6)
    with pytest.raises(BertkitError, match=r'no column "review"\. Its columns: comment, title'):
        pipeline.predict(frame(comment=texts, title=texts))
    both = frame(comment=texts, title=["the old mill"] * 7)
    assert scores(pipeline.predict(both, text="comment")) == pytest.approx(expected, abs=1e-6)
    np.testing.assert_allclose(pipeline.logits(both, text="comment"), pipeline.logits(texts), atol=1e-6)
    with pytest.raises(BertkitError, match="text and pair name columns of a table"):
        pipeline.predict(texts, text="comment")
    with pytest.warns(UserWarning, match="1 row of the table has an empty text"):
        pipeline.predict(frame(review=[*texts, None]))


def test_columns_that_are_guessed_are_said(
    tmp_path: Path, encoder: Bert, task: TextClassificationTask, tokenizer: WordPiece, examples: list[TextExample]
) -> None:
    """A model of another library says nothing about columns."""
    pipeline = save(tmp_path, encoder, task, tokenizer)
    texts = [example.first for example in examples[:7]]
    with pytest.warns(UserWarning, match="the table: text = text"):
        found = pipeline.predict(frame(text=texts, remark=[f"{text} {text}" for text in texts]))
    assert scores(found) == pytest.approx(scores(pipeline.predict(texts)), abs=1e-6)


@pytest.mark.parametrize("backend", possible_backends("float32"))
def test_predictions_do_not_depend_on_the_default_number_format(
    tmp_path: Path,
    encoder: Bert,
    task: TextClassificationTask,
    tokenizer: WordPiece,
    examples: list[TextExample],
    backend: Backend,
) -> None:
    pipeline = save(tmp_path, encoder, task, tokenizer)
    pipeline.__dict__["runtime"] = Runtime("float32", backend)
    texts = [example.first for example in examples[:7]]
    expected = pipeline.logits(texts)
    torch.set_default_dtype(torch.float64)
    try:
        np.testing.assert_array_equal(pipeline.logits(texts), expected)
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_list_of_texts_is_tagged(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    tagger = save(tmp_path, encoder, TaggingTask(name="tags", labels=("O", "B-X"), max_length=41), tokenizer)
    found = tagger.predict(["the river ran", "an old mill"])
    for prediction, text in zip(found, ("the river ran", "an old mill"), strict=True):
        alone = tagger.tag(text)
        assert [each.text for each in prediction.entities] == [each.text for each in alone]
        assert [each.score for each in prediction.entities] == pytest.approx([each.score for each in alone], abs=1e-6)


@pytest.mark.parametrize("labels", [1, 2, 5])
@pytest.mark.parametrize("pair", [False, True])
def test_logits_are_those_of_transformers(tmp_path: Path, tokenizer: WordPiece, labels: int, pair: bool) -> None:
    """Of a folder that transformers wrote, for texts of several lengths in one batch."""
    hf = pytest.importorskip("transformers")
    torch.manual_seed(7)
    shape = {"hidden_size": 14, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 37}
    config = hf.BertConfig(
        vocab_size=tokenizer.vocab_size, num_labels=labels, max_position_embeddings=41, initializer_range=0.5, **shape
    )
    reference = hf.BertForSequenceClassification(config).eval()
    reference.save_pretrained(tmp_path)
    tokenizer.save(tmp_path)
    pairs = [(SENTENCES[0], "mill"), ("river", SENTENCES[1]), ("old", "stone")]
    texts: list[Any] = pairs if pair else [first for first, _ in pairs]
    words = hf.AutoTokenizer.from_pretrained(tmp_path)
    with torch.inference_mode():
        expected = [
            reference(**words(*([text] if isinstance(text, str) else text), return_tensors="pt")).logits[0]
            for text in texts
        ]
    np.testing.assert_allclose(load(tmp_path).logits(texts), torch.stack(expected).numpy(), atol=1e-5)


def test_logits_become_the_scores(
    tmp_path: Path, encoder: Bert, task: FileTask, tokenizer: WordPiece, examples: list[TextExample]
) -> None:
    pipeline = save(tmp_path, encoder, task, tokenizer)
    texts = [example.first for example in examples[:7]]
    found = torch.from_numpy(pipeline.logits(texts)).softmax(dim=1).flatten().tolist()
    assert found == pytest.approx(scores(pipeline.predict(texts)), abs=1e-6)
    assert pipeline.logits([]).shape == (0, len(task.labels))


def test_a_model_with_inputs_of_another_kind_reads_no_list_of_texts(
    tmp_path: Path, encoder: Bert, tokenizer: WordPiece
) -> None:
    tagger = save(tmp_path / "tags", encoder, TaggingTask(name="tags", labels=("O", "B-X"), max_length=41), tokenizer)
    reader = save(tmp_path / "answers", encoder, QuestionAnsweringTask(name="qa", max_length=41), tokenizer)
    cases: list[tuple[Pipeline, Any, str]] = [
        (tagger, [("river", "mill")], r"texts\[0\] is .*; it must be a text"),
        (tagger, frame(n=[5]), "^the table is a table. Words are read from columns"),
        (reader, [("river", "mill")], "is fine-tuned for qa and reads no list of texts: use answer"),
        (reader, frame(text=["river"]), '^the table has no column "question"'),
    ]
    for pipeline, texts, message in cases:
        with pytest.raises(BertkitError, match=message):
            pipeline.predict(texts)


def test_a_model_that_tags_words_reads_tables(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    tagger = save(tmp_path, encoder, TaggingTask(name="tags", labels=("O", "B-X"), max_length=41), tokenizer)
    texts = ["the river", "", "a mill"]
    expected = [each.label for each in tagger.predict(texts)]
    assert [len(each) for each in expected] == [2, 0, 2]
    found = tagger.predict(frame(text=texts))
    assert [each.label for each in found] == expected
    assert list(found.to_pandas().index) == [7, 8, 9]
    words = tagger.predict(frame(sentence_id=[1, 1, 2, 2], word=["the", "river", "a", "mill"]))
    assert [each.label for each in words] == [expected[0], expected[2]]
    assert len(words.to_pandas()) == 2


def test_a_model_that_tags_words_has_no_logits_of_texts(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    tagger = TaggingTask(name="tags", labels=("O", "B-X", "I-X"), max_length=41)
    with pytest.raises(BertkitError, match="is fine-tuned for tags; logits are those of one answer per text"):
        save(tmp_path, encoder, tagger, tokenizer).logits(["river"])


def test_a_loaded_model_stays_in_evaluation_mode_and_threads_may_share_it(
    tmp_path: Path, encoder: Bert, task: FileTask, tokenizer: WordPiece, examples: list[TextExample]
) -> None:
    pipeline = save(tmp_path, encoder, task, tokenizer)
    assert not any(module.training for module in pipeline.task_model.modules())
    texts = [example.first for example in examples[:20]]
    expected = [scores([pipeline.predict([text])[0]]) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            found = list(pool.map(lambda text: scores([pipeline.predict([text])[0]]), texts))
            assert np.allclose(found, expected, atol=1e-6)


def test_a_model_for_longer_rows_than_its_positions_is_refused(
    tmp_path: Path, encoder: Bert, task: TextClassificationTask, tokenizer: WordPiece
) -> None:
    positions = encoder.config.max_positions
    assert save(tmp_path / "fits", encoder, replace(task, max_length=positions), tokenizer).task.max_length == positions
    longer = save(tmp_path / "longer", encoder, replace(task, max_length=positions + 1), tokenizer)
    with pytest.raises(BertkitError, match=f"max_length={positions + 1}, and its network reads {positions} tokens"):
        longer.predict(["the river ran"])
