from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import pytest
import torch
from tests.tiny_bert import SENTENCES

from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import save_model
from bertkit.errors import BertkitError
from bertkit.inference.conversion import convert_to_sentence_transformers
from bertkit.inference.pipeline import Pipeline, load
from bertkit.model import Model
from bertkit.task_types import SimilarityTask, TextClassificationTask
from bertkit.text.wordpiece import WordPiece

PAIRS = [
    ("A man is playing a guitar.", "Someone plays an instrument."),
    ("Two dogs run over a field.", "The committee meets on Thursday, as it has done for years."),
    ("ok", "A sentence that is a good deal longer than the others of this list, so that there is padding."),
]


@pytest.fixture
def pipeline(tmp_path: Path, model: Model, tokenizer: WordPiece) -> Pipeline:
    save_model(tmp_path / "model", Model(model.encoder, {}), tokenizer, metadata={})
    return load(tmp_path)


@pytest.mark.parametrize(
    "clone", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))], ids=["copy", "pickle"]
)
def test_a_model_that_was_used_can_be_copied_to_another_process(
    clone: Callable[[Pipeline], Pipeline],
    tmp_path: Path,
    model: Model,
    task: TextClassificationTask,
    tokenizer: WordPiece,
) -> None:
    save_model(tmp_path, model, tokenizer, metadata={"kind": "finetune", "task": task.record()})
    used = load(tmp_path, precision="int8")  # whose weights are always in the layout of oneDNN
    vectors, predictions = used.embed(SENTENCES), used.classify(SENTENCES)
    copied = clone(used)
    assert copied.precision == used.precision
    np.testing.assert_array_equal(copied.embed(SENTENCES), vectors)
    assert copied.classify(SENTENCES) == predictions


def test_one_text_a_list_an_array_and_an_iterator_are_accepted(pipeline: Pipeline) -> None:
    expected = pipeline.embed(SENTENCES)
    assert expected.shape == (4, 14)
    assert expected.dtype == np.dtype("float32")
    np.testing.assert_array_equal(pipeline.embed(np.array(SENTENCES)), expected)
    np.testing.assert_array_equal(pipeline.embed(iter(SENTENCES)), expected)
    np.testing.assert_allclose(pipeline.embed(SENTENCES[2]), expected[2:3], atol=1e-6)
    assert pipeline.embed([]).shape == (0, 14)


def test_a_column_of_a_table_is_accepted(pipeline: Pipeline) -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"text": SENTENCES}, index=[7, 5, 3, 1])
    np.testing.assert_array_equal(pipeline.embed(table["text"]), pipeline.embed(SENTENCES))
    with pytest.raises(BertkitError, match="texts is a table with the columns text: give the list of one column"):
        pipeline.embed(table)


def test_the_similarity_is_the_cosine(pipeline: Pipeline) -> None:
    matrix = pipeline.similarity(SENTENCES[:3], SENTENCES[2:])
    assert matrix.shape == (3, 2)
    vectors = pipeline.embed(SENTENCES)
    lengths = np.linalg.norm(vectors, axis=1)
    expected = vectors[:3] @ vectors[2:].T / np.outer(lengths[:3], lengths[2:])
    np.testing.assert_allclose(matrix, expected, atol=1e-6)
    one = pipeline.similarity(SENTENCES[0], SENTENCES[3])
    assert isinstance(one, float)
    assert one == pytest.approx(expected[0, 1], abs=1e-6)
    assert pipeline.similarity(SENTENCES[0], SENTENCES).shape == (1, 4)


def test_texts_that_are_too_long_are_counted(pipeline: Pipeline) -> None:
    vectors = pipeline.embed([" ".join(SENTENCES * 5), SENTENCES[0], " ".join(SENTENCES * 9)])
    assert pipeline.num_truncated == 2
    np.testing.assert_allclose(vectors[0], vectors[2], atol=1e-6)
    assert pipeline.max_length == 41


@pytest.mark.parametrize("texts", ["", " \n", ["river", "\t"], ["river", None], [("a", "b")], 3, [float("nan")]])
def test_a_text_that_is_empty_or_no_text_is_an_error(pipeline: Pipeline, texts: Any) -> None:
    with pytest.raises((BertkitError, TypeError), match=r"texts"):
        pipeline.embed(texts)


def test_an_empty_text_is_named(pipeline: Pipeline) -> None:
    message = r"^texts\[1\] is empty: there is nothing to read\. Give a text\.$"
    with pytest.raises(BertkitError, match=message):
        pipeline.embed(["river", ""])
    with pytest.raises(BertkitError, match=r"^text is empty"):
        pipeline.hidden_states(" ")


def test_hidden_states_are_shown_with_their_tokens(pipeline: Pipeline) -> None:
    found = pipeline.hidden_states("river mill")
    assert found.tokens == ("[CLS]", "river", "mill", "[SEP]")
    assert found.offsets.tolist() == [[0, 0], [0, 5], [6, 10], [0, 0]]
    assert found.states.shape == (3, 4, 14)
    assert found.states.dtype == np.dtype("float32")
    np.testing.assert_allclose(found.states[-1].mean(axis=0), pipeline.embed("river mill")[0], atol=1e-6)


def test_vectors_after_hidden_states_are_those_before(pipeline: Pipeline) -> None:
    before = pipeline.embed(SENTENCES)
    pipeline.hidden_states(SENTENCES[0])
    np.testing.assert_array_equal(pipeline.embed(SENTENCES), before)


def test_hidden_states_are_those_of_transformers(minilm: Path) -> None:
    hf = pytest.importorskip("transformers")
    tokenizer, reference = hf.AutoTokenizer.from_pretrained(minilm), hf.AutoModel.from_pretrained(minilm).eval()
    pipeline = load(minilm)
    for text in [text for pair in PAIRS for text in pair]:
        with torch.inference_mode():
            expected = reference(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states
        states = pipeline.hidden_states(text).states
        np.testing.assert_allclose(states, torch.cat(expected).numpy(), atol=1e-5)


def test_a_saved_model_is_the_same_model(
    tmp_path: Path, model: Model, task: TextClassificationTask, tokenizer: WordPiece
) -> None:
    save_model(tmp_path / "run", model, tokenizer, metadata={"kind": "finetune", "task": task.record()})
    pipeline = load(tmp_path / "run")
    assert pipeline.save(tmp_path / "new").heads == ("class",)
    np.testing.assert_array_equal(load(tmp_path / "new").logits(SENTENCES), pipeline.logits(SENTENCES))
    pipeline.save(tmp_path / "cross", to="sentence-transformers")
    np.testing.assert_array_equal(load(tmp_path / "cross").logits(SENTENCES), pipeline.logits(SENTENCES))
    with pytest.raises(
        BertkitError, match=r"new has a model. Choose another folder, or replace it with overwrite=True"
    ):
        pipeline.save(tmp_path / "new")
    pipeline.save(tmp_path / "new", overwrite=True)
    np.testing.assert_array_equal(load(tmp_path / "new").logits(SENTENCES), pipeline.logits(SENTENCES))
    with pytest.raises(BertkitError, match=r"run is the folder of this model"):
        pipeline.save(tmp_path / "run", overwrite=True)
    wrong: Any = "onnx"
    with pytest.raises((BertkitError, TypeError), match="onnx"):
        pipeline.save(tmp_path / "other", to=wrong)
    with pytest.raises(BertkitError, match="an ensemble is not one model"):
        load(tmp_path / "run", tmp_path / "new").save(tmp_path / "other")


def test_a_fine_tuned_model_has_vectors_and_an_ensemble_has_none(
    tmp_path: Path, model: Model, task: TextClassificationTask, tokenizer: WordPiece
) -> None:
    for name in ("a", "b"):
        save_model(tmp_path / name, model, tokenizer, metadata={"kind": "finetune", "task": task.record()})
    assert load(tmp_path / "a").embed("river").shape == (1, 14)
    with pytest.raises(BertkitError, match="the models of an ensemble have no vectors in common: load one of them"):
        load(tmp_path / "a", tmp_path / "b").embed("river")


def test_a_model_of_embeddings_has_the_pooling_of_its_training(
    tmp_path: Path, model: Model, tokenizer: WordPiece
) -> None:
    task = SimilarityTask(name="t", pooling="max", max_length=41)
    trained = Model(model.encoder, task.objectives(model.encoder))
    save_model(tmp_path / "model", trained, tokenizer, metadata={"kind": "finetune", "task": task.record()})
    pipeline = load(tmp_path)
    assert pipeline.embedding.pool == "max"
    np.testing.assert_array_equal(pipeline.embed(SENTENCES), pipeline.embed(SENTENCES, "max"))
    (prediction,) = pipeline.predict([(SENTENCES[0], SENTENCES[1])])
    assert prediction.label == pytest.approx(pipeline.similarity(SENTENCES[0], SENTENCES[1]), abs=1e-6)


def test_sentence_transformers_makes_the_same_vectors_with_a_model_of_embeddings(
    tmp_path: Path, model: Model, tokenizer: WordPiece
) -> None:
    transformers = pytest.importorskip("sentence_transformers")
    task = SimilarityTask(name="t", pooling="max", max_length=41)
    trained = Model(model.encoder, task.objectives(model.encoder))
    save_model(tmp_path / "run", trained, tokenizer, metadata={"kind": "finetune", "task": task.record()})
    convert_to_sentence_transformers(ModelFolder.open(tmp_path / "run"), tmp_path / "exported")
    expected = transformers.SentenceTransformer(str(tmp_path / "exported"), device="cpu").encode(SENTENCES)
    np.testing.assert_allclose(load(tmp_path / "run").embed(SENTENCES), expected, atol=1e-5)
    np.testing.assert_allclose(load(tmp_path / "exported").embed(SENTENCES), expected, atol=1e-5)


def test_a_folder_that_states_more_tokens_than_the_model_has_positions_is_cut_at_these(
    tmp_path: Path, model: Model, tokenizer: WordPiece
) -> None:
    save_model(tmp_path / "run", model, tokenizer, metadata={})
    convert_to_sentence_transformers(ModelFolder.open(tmp_path / "run"), tmp_path / "exported")
    (tmp_path / "exported" / "bertkit.json").unlink()  # as a folder of another library
    (tmp_path / "exported" / "sentence_bert_config.json").write_text('{"max_seq_length": 1024}')
    pipeline = load(tmp_path / "exported")
    assert pipeline.max_length == 41
    assert pipeline.embed("a river " * 99).shape == (1, 14)


def test_vectors_of_real_weights_are_those_of_sentence_transformers(minilm: Path) -> None:
    """Its folder says: the mean, normalized, of the first 256 tokens."""
    transformers = pytest.importorskip("sentence_transformers")
    texts = [*(text for pair in PAIRS for text in pair), "a very long text " * 99]
    pipeline = load(minilm)
    reference = transformers.SentenceTransformer(str(minilm), device="cpu")
    assert pipeline.max_length == reference.max_seq_length
    np.testing.assert_allclose(pipeline.embed(texts), reference.encode(texts), atol=1e-5)


def test_normalize_is_true_or_false(
    tmp_path: Path, model: Model, tokenizer: WordPiece, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_model(tmp_path / "run", model, tokenizer, metadata={})
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # users' calls are not checked
    with pytest.raises(BertkitError, match="normalize is 'no'; it must be true or false"):
        load(tmp_path / "run").embed("a river", normalize="no")  # type: ignore[arg-type]
