"""Folders of sentence-transformers, read and written, beside the library itself."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import save_model
from bertkit.checkpoint.sentence_transformers import SentenceEmbedding, applies_sigmoid, read_embedding, write_embedding
from bertkit.encoders.bert import Bert
from bertkit.errors import BertkitError
from bertkit.inference.conversion import convert, convert_to_sentence_transformers
from bertkit.inference.pipeline import load
from bertkit.model import Model
from bertkit.nn.text_pooling import Pooling
from bertkit.objectives.regression import Regression
from bertkit.objectives.sequence_classification import SequenceClassification
from bertkit.task_types import RegressionTask, TextClassificationTask
from bertkit.task_types.similarity import SimilarityTask
from bertkit.text.wordpiece import WordPiece

TEXTS = ["a b c", "z", "a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e f g h i j k l m n o p"]
CASES: list[tuple[Pooling, bool, int | None]] = [
    ("mean", True, 17),
    ("cls", False, None),
    ("max", True, 41),
    ("mean", False, 9),
]
EVERY = [SentenceEmbedding(pool=pool, normalize=normalize, max_length=length) for pool, normalize, length in CASES]


@pytest.fixture(scope="module")
def library() -> Any:
    """The module sentence_transformers, which takes seconds to import."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("sentence_transformers", reason="needs sentence-transformers (in the extra [test])")


@pytest.fixture
def folder(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> Path:
    """A model folder with an encoder alone."""
    save_model(tmp_path / "encoder", Model(encoder, {}), tokenizer, metadata={})
    return tmp_path / "encoder"


def our_vectors(folder: Path, texts: list[str]) -> NDArray[np.float32]:
    model = ModelFolder.open(folder)
    embedding = model.embedding
    assert embedding is not None
    pipeline = load(folder)
    limit = (embedding.max_length or 41) - 2
    short = [" ".join(text.split()[:limit]) for text in texts]  # every word is one token here
    return pipeline.embed(short, embedding.pool, normalize=embedding.normalize)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("embedding", EVERY)
def test_the_library_loads_what_is_written_and_gives_the_same_vectors(
    tmp_path: Path, encoder: Bert, tokenizer: WordPiece, library: Any, embedding: SentenceEmbedding
) -> None:
    save_model(tmp_path / "out", Model(encoder, {}), tokenizer, metadata={}, embedding=embedding)
    theirs = library.SentenceTransformer(str(tmp_path / "out"), device="cpu")
    assert theirs.max_seq_length == (embedding.max_length or 41)
    assert ModelFolder.open(tmp_path / "out").embedding == SentenceEmbedding(
        pool=embedding.pool, normalize=embedding.normalize, max_length=embedding.max_length or 41
    )
    np.testing.assert_allclose(our_vectors(tmp_path / "out", TEXTS), theirs.encode(TEXTS), rtol=0, atol=1e-5)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("embedding", EVERY)
def test_what_the_library_writes_is_read_with_the_same_vectors(
    tmp_path: Path, encoder: Bert, tokenizer: WordPiece, library: Any, embedding: SentenceEmbedding
) -> None:
    """The library writes the compact form, whatever it has read."""
    save_model(tmp_path / "out", Model(encoder, {}), tokenizer, metadata={}, embedding=embedding)
    theirs = library.SentenceTransformer(str(tmp_path / "out"), device="cpu")
    theirs.save(str(tmp_path / "back"))
    pooling = json.loads((tmp_path / "back" / "1_Pooling" / "config.json").read_text())
    assert pooling["pooling_mode"] == embedding.pool
    found = ModelFolder.open(tmp_path / "back").embedding
    assert found == ModelFolder.open(tmp_path / "out").embedding
    np.testing.assert_allclose(our_vectors(tmp_path / "back", TEXTS), theirs.encode(TEXTS), rtol=0, atol=1e-5)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_a_published_model_is_imported_and_exported_with_the_same_vectors(
    tmp_path: Path, minilm: Path, library: Any
) -> None:
    texts = ["The ferry had already left when we reached the quay.", "Nobody in the café knew why."]
    convert(ModelFolder.open(minilm), tmp_path / "imported")
    convert_to_sentence_transformers(ModelFolder.open(tmp_path / "imported"), tmp_path / "exported")
    expected = library.SentenceTransformer(str(minilm), device="cpu").encode(texts)
    for folder in (tmp_path / "imported", tmp_path / "exported"):
        assert ModelFolder.open(folder).embedding == SentenceEmbedding(pool="mean", normalize=True, max_length=256)
        found = library.SentenceTransformer(str(folder), device="cpu").encode(texts)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(load(minilm).embed(texts, "mean", normalize=True), expected, rtol=0, atol=1e-5)


def test_a_folder_without_modules_is_not_one_of_sentence_transformers(folder: Path) -> None:
    assert read_embedding(folder) is None


def test_a_default_prompt_that_is_no_name_is_ignored(tmp_path: Path) -> None:
    write_embedding(tmp_path, SentenceEmbedding(), hidden_size=14, positions=41)
    content = {"prompts": {"query": "query: "}, "default_prompt_name": ["query"]}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(content))
    assert read_embedding(tmp_path) == SentenceEmbedding(max_length=41)


def test_a_pooling_without_the_prompt_is_written_again(tmp_path: Path) -> None:
    write_embedding(tmp_path, SentenceEmbedding(include_prompt=False), hidden_size=14, positions=41)
    found = read_embedding(tmp_path)
    assert found is not None
    assert not found.include_prompt


def test_the_verbose_form_is_written(tmp_path: Path) -> None:
    """The keys that text-embeddings-inference 1.9.3 requires; its parser refuses the compact form."""
    write_embedding(tmp_path, SentenceEmbedding(pool="cls", normalize=True), hidden_size=14, positions=41)
    pooling = json.loads((tmp_path / "1_Pooling" / "config.json").read_text())
    assert [key for key, value in pooling.items() if value is True] == ["pooling_mode_cls_token", "include_prompt"]
    assert pooling["word_embedding_dimension"] == 14
    assert "pooling_mode" not in pooling
    assert json.loads((tmp_path / "sentence_bert_config.json").read_text())["max_seq_length"] == 41
    modules = json.loads((tmp_path / "modules.json").read_text())
    assert [(each["path"], each["type"].rpartition(".")[2]) for each in modules] == [
        ("", "Transformer"),
        ("1_Pooling", "Pooling"),
        ("2_Normalize", "Normalize"),
    ]
    assert (tmp_path / "2_Normalize").is_dir()


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("modules.json", [{"type": "x.Transformer"}, {"type": "x.Pooling"}, {"type": "x.Dense"}], "Pooling, Dense"),
        ("modules.json", [{"type": "x.CLIPModel"}], "has the modules CLIPModel"),
        ("modules.json", {}, "is not a list of modules"),
        ("modules.json", [3], "is not a list of modules"),
        (
            "1_Pooling/config.json",
            {"pooling_mode": "lasttoken"},
            "the pooling is lasttoken; bertkit has cls, mean, max",
        ),
        ("1_Pooling/config.json", {"pooling_mode": ["cls", "mean"]}, "the pooling is cls and mean"),
        (
            "1_Pooling/config.json",
            {"pooling_mode_cls_token": True, "pooling_mode_max_tokens": True},
            "the pooling is cls and max",
        ),
        (
            "config_sentence_transformers.json",
            {"prompts": {"query": "query: "}, "default_prompt_name": "query"},
            'the default prompt is "query: "',
        ),
    ],
)
def test_what_would_give_other_vectors_is_refused(tmp_path: Path, file: str, content: object, message: str) -> None:
    write_embedding(tmp_path, SentenceEmbedding(), hidden_size=14, positions=41)
    (tmp_path / file).write_text(json.dumps(content))
    with pytest.raises(BertkitError, match=message):
        read_embedding(tmp_path)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_lower_casing_before_a_cased_tokenizer_is_refused(
    tmp_path: Path, encoder: Bert, tokenizer: WordPiece, library: Any
) -> None:
    """The library lower-cases texts itself, so that its vectors would be others."""
    (tmp_path / "cased").mkdir()
    (tmp_path / "cased" / "vocab.txt").write_text("\n".join([*tokenizer.vocabulary, "A", "B"]), encoding="utf-8")
    (tmp_path / "cased" / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    cased = WordPiece.load(tmp_path / "cased")
    for name, each in (("uncased", tokenizer), ("kept", cased)):
        folder = tmp_path / f"{name}-out"
        save_model(folder, Model(encoder, {}), each, metadata={}, embedding=SentenceEmbedding())
        (folder / "bertkit.json").unlink()
        file = folder / "sentence_bert_config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "do_lower_case": True}))
    assert read_embedding(tmp_path / "uncased-out") == SentenceEmbedding(max_length=41)
    ours = load(tmp_path / "uncased-out").embed(["A b"])
    theirs = library.SentenceTransformer(str(tmp_path / "uncased-out"), device="cpu").encode(["A b"])
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)
    with pytest.raises(BertkitError, match="do_lower_case is true, and the tokenizer keeps upper case"):
        load(tmp_path / "kept-out").embed(["A b"])


def test_a_folder_without_flags_has_the_mean(tmp_path: Path) -> None:
    write_embedding(tmp_path, SentenceEmbedding(pool="max"), hidden_size=14, positions=41)
    (tmp_path / "1_Pooling" / "config.json").write_text('{"word_embedding_dimension": 14}')
    assert read_embedding(tmp_path) == SentenceEmbedding(pool="mean", max_length=41)


def randomized(model: Model) -> Model:
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.3)
    return model


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_a_model_of_numbers_becomes_a_cross_encoder(
    tmp_path: Path, encoder: Bert, tokenizer: WordPiece, library: Any
) -> None:
    """Without a sigmoid, as it was trained; a cross-encoder from elsewhere keeps its own."""
    task = RegressionTask(name="pairs", metric="pearson", pair=True, max_length=41)
    model = randomized(Model(encoder, {"number": Regression(encoder.hidden_size)}))
    save_model(tmp_path / "run", model, tokenizer, metadata={"task": task.record()})
    convert_to_sentence_transformers(ModelFolder.open(tmp_path / "run"), tmp_path / "out")
    pairs = [("a b", "c d"), ("z y x", "a")]
    theirs = library.CrossEncoder(str(tmp_path / "out"), device="cpu")
    ours = [float(str(each.label)) for each in load(tmp_path / "run").predict(pairs)]
    np.testing.assert_allclose(ours, theirs.predict(pairs), rtol=0, atol=1e-5)
    theirs.activation_fn = torch.nn.Sigmoid()
    theirs.save_pretrained(str(tmp_path / "reranker"))
    convert(ModelFolder.open(tmp_path / "reranker"), tmp_path / "again")
    again = library.CrossEncoder(str(tmp_path / "again"), device="cpu")
    np.testing.assert_allclose(again.predict(pairs), theirs.predict(pairs), rtol=0, atol=1e-5)
    assert all(0 < score < 1 for score in again.predict(pairs))


@pytest.mark.parametrize(
    ("newest", "config", "sigmoid"),
    [
        ({}, {}, True),
        ({}, {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}, False),
        ({}, {"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"}, False),
        ({}, {"problem_type": "regression"}, False),
        ({"activation_fn": "torch.nn.modules.activation.Sigmoid"}, {"problem_type": "regression"}, True),
        (
            {"activation_fn": "torch.nn.modules.activation.Sigmoid"},
            {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}},
            True,
        ),
    ],
)
def test_the_function_of_a_cross_encoder_is_found_where_each_version_writes_it(
    tmp_path: Path, newest: dict[str, str], config: dict[str, object], sigmoid: bool
) -> None:
    if newest:
        (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(newest))
    assert applies_sigmoid(tmp_path, config) is sigmoid


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_a_classifier_becomes_a_cross_encoder(
    tmp_path: Path, encoder: Bert, tokenizer: WordPiece, library: Any
) -> None:
    labels = ("dry", "wet", "odd")
    task = TextClassificationTask(name="pairs", metric="accuracy", labels=labels, pair=True, max_length=41)
    model = randomized(Model(encoder, {"class": SequenceClassification(encoder.hidden_size, 3)}))
    save_model(tmp_path / "run", model, tokenizer, metadata={"task": task.record()})
    convert_to_sentence_transformers(ModelFolder.open(tmp_path / "run"), tmp_path / "out")
    pairs = [("a b", "c d"), ("z y x", "a")]
    theirs = library.CrossEncoder(str(tmp_path / "out"), device="cpu").predict(pairs, apply_softmax=True)
    ours = [[each.scores[label] for label in labels] for each in load(tmp_path / "run").predict(pairs)]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


def test_pretraining_heads_are_left_out_of_a_sentence_transformer(workspace: Path, tmp_path: Path) -> None:
    found = convert_to_sentence_transformers(ModelFolder.open(workspace / "run"), tmp_path / "out")
    assert found.heads == ()
    assert ModelFolder.open(tmp_path / "out").embedding == SentenceEmbedding(max_length=41)
    assert json.loads((tmp_path / "out" / "config.json").read_text())["architectures"] == ["BertModel"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_model_that_was_trained_for_similarity_keeps_its_pooling(
    tmp_path: Path, encoder: Bert, tokenizer: WordPiece, library: Any, pooling: Pooling
) -> None:
    task = SimilarityTask(name="pairs", pooling=pooling, max_length=17)
    save_model(tmp_path / "run", Model(encoder, task.objectives(encoder)), tokenizer, metadata={"task": task.record()})
    convert_to_sentence_transformers(ModelFolder.open(tmp_path / "run"), tmp_path / "out")
    vectors = library.SentenceTransformer(str(tmp_path / "out"), device="cpu").encode(["a b c", "z y"])
    (prediction,) = load(tmp_path / "run").predict([("a b c", "z y")])
    assert float(str(prediction.label)) == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-5)


@pytest.mark.parametrize("embedding", EVERY)
def test_vectors_are_made_as_the_folder_says(
    tmp_path: Path, encoder: Bert, tokenizer: WordPiece, embedding: SentenceEmbedding
) -> None:
    save_model(tmp_path / "out", Model(encoder, {}), tokenizer, metadata={}, embedding=embedding)
    found = load(tmp_path / "out").embed(TEXTS, normalize=embedding.normalize)
    np.testing.assert_allclose(found, our_vectors(tmp_path / "out", TEXTS), rtol=0, atol=1e-6)


def test_heads_that_the_library_lacks_are_refused(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    task = TextClassificationTask(name="t", metric="accuracy", labels=("a", "b"), pooling="mean", max_length=41)
    save_model(tmp_path / "run", Model(encoder, task.objectives(encoder)), tokenizer, metadata={"task": task.record()})
    with pytest.raises(BertkitError, match="has a head for class that sentence-transformers lacks"):
        convert_to_sentence_transformers(ModelFolder.open(tmp_path / "run"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_prompts_and_the_similarity_are_written_again(folder: Path, tmp_path: Path) -> None:
    convert_to_sentence_transformers(ModelFolder.open(folder), tmp_path / "first")
    path = tmp_path / "first" / "config_sentence_transformers.json"
    content = json.loads(path.read_text())
    assert (content["prompts"], content["similarity_fn_name"]) == ({"query": "", "document": ""}, "cosine")
    own = {"prompts": {"query": "query: "}, "similarity_fn_name": "dot"}
    path.write_text(json.dumps({**content, **own}))
    (tmp_path / "first" / "bertkit.json").unlink()
    for name, write in (("kept", convert), ("exported", convert_to_sentence_transformers)):
        write(ModelFolder.open(tmp_path / "first"), tmp_path / name)
        written = json.loads((tmp_path / name / "config_sentence_transformers.json").read_text())
        assert {key: written[key] for key in own} == own
