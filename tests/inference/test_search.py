from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from tests.tiny_bert import SENTENCES

from bertkit.checkpoint.save_model import save_model
from bertkit.encoders.bert import Bert
from bertkit.errors import BertkitError
from bertkit.inference import embedding_store
from bertkit.inference import search as search_module
from bertkit.inference.embedding import EmbeddingSettings
from bertkit.inference.embedding_files import embed_file
from bertkit.inference.embedding_store import StoredVectors
from bertkit.inference.pipeline import Pipeline, load
from bertkit.inference.search import add_texts, search
from bertkit.inference.text_column import open_text_column
from bertkit.model import Model
from bertkit.text.wordpiece import WordPiece, train

TEXTS = [" ".join(SENTENCES[row % 4].split()[row % 7 :] + SENTENCES[row % 3].split()[: row % 5]) for row in range(97)]


@pytest.fixture
def pipeline(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> Pipeline:
    save_model(tmp_path / "model", Model(encoder, {}), tokenizer, metadata={})
    return load(tmp_path / "model")


@pytest.fixture
def stored(tmp_path: Path, pipeline: Pipeline) -> StoredVectors:
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    settings = EmbeddingSettings(pool="max", layers=(-1, -2))
    source = open_text_column(tmp_path / "texts.txt")
    embed_file(pipeline, source, tmp_path / "v.npy", settings, start=lambda rows, empty: lambda done: None)
    return StoredVectors(tmp_path / "v.npy")


def test_the_nearest_are_found_over_all_blocks(
    stored: StoredVectors, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_store, "BLOCK_BYTES", 4 * 14 * 13)
    query = "the miller counted wide stones"
    vectors = pipeline.embed(TEXTS, "max", layers=(-1, -2), normalize=True)
    cosines = vectors @ pipeline.embed(query, "max", layers=(-1, -2), normalize=True)[0]
    found = search(stored, query, pipeline, top_k=11)
    np.testing.assert_allclose([each.score for each in found], np.sort(cosines)[::-1][:11], atol=1e-5)
    np.testing.assert_allclose([cosines[each.row - 1] for each in found], [each.score for each in found], atol=1e-5)
    assert len(search(stored, query, pipeline, top_k=1000)) == len(TEXTS)


def test_many_queries_find_what_each_finds_alone(
    stored: StoredVectors, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_store, "BLOCK_BYTES", 4 * 14 * 13)
    monkeypatch.setattr("bertkit.inference.search._QUERIES_AT_ONCE", 2)
    queries = ["the miller counted", TEXTS[42], "wide stones"]
    found = search(stored, queries, pipeline, top_k=5)
    assert [each.query for each in found] == [query for query in queries for _ in range(5)]
    for query in queries:
        alone = search(stored, query, pipeline, top_k=5)
        assert "query" not in alone._repr_html_() and "query" in found._repr_html_()
        beside = [each for each in found if each.query == query]
        assert [each.row for each in beside] == [each.row for each in alone]
        np.testing.assert_allclose([each.score for each in beside], [each.score for each in alone], atol=1e-6)
    with pytest.raises(BertkitError, match=r"^query\[1\] is empty"):
        search(stored, ["river", " "], pipeline)


def test_a_query_without_a_text_is_named(stored: StoredVectors, pipeline: Pipeline) -> None:
    with pytest.raises(BertkitError, match=r"^query is empty"):
        search(stored, " ", pipeline)


def test_a_text_finds_itself_first_and_has_its_text(stored: StoredVectors, pipeline: Pipeline, tmp_path: Path) -> None:
    (best,) = search(stored, TEXTS[42], pipeline, top_k=1)
    assert best.score == pytest.approx(1, abs=1e-5)
    (shown,) = add_texts([best], open_text_column(tmp_path / "texts.txt"), stored.record)
    assert shown.text == TEXTS[42]
    (tmp_path / "texts.txt").write_text("another file\n")
    with pytest.raises(BertkitError, match=r"texts\.txt has 1 text, and there are 97 vectors"):
        add_texts([best], open_text_column(tmp_path / "texts.txt"), stored.record)


def test_a_column_with_half_a_character_has_its_texts(pipeline: Pipeline, tmp_path: Path) -> None:
    """Parquet cannot hold it; the column beside the vectors is still that of the texts."""
    pytest.importorskip("pyarrow")
    (tmp_path / "texts.jsonl").write_text('{"text": "half \\ud83d"}\n{"text": "the mill"}\n')
    source = open_text_column(tmp_path / "texts.jsonl")
    embed_file(
        pipeline, source, tmp_path / "v.parquet", EmbeddingSettings(), start=lambda rows, empty: lambda done: None
    )
    stored = StoredVectors(tmp_path / "v.parquet")
    for file in (stored.path, tmp_path / "texts.jsonl"):
        found = add_texts(search(stored, "the mill", pipeline, top_k=2), open_text_column(file, "text"), stored.record)
        assert found[0].text == "the mill"
        assert str(found[1].text).startswith("half ")


def test_texts_that_have_changed_since_are_not_shown(stored: StoredVectors, pipeline: Pipeline, tmp_path: Path) -> None:
    best = search(stored, TEXTS[42], pipeline, top_k=1)
    for texts in ([TEXTS[1], TEXTS[0], *TEXTS[2:]], [*TEXTS[:96], "a later text"]):
        (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n")
        with pytest.raises(BertkitError, match=r"texts\.txt has other texts, or another order, than when it was embed"):
            add_texts(best, open_text_column(tmp_path / "texts.txt"), stored.record)


@pytest.mark.parametrize("damage", ["a bit", "two rows"])
def test_vectors_that_have_changed_are_refused(
    stored: StoredVectors, pipeline: Pipeline, tmp_path: Path, damage: str
) -> None:
    if damage == "a bit":
        data = bytearray((tmp_path / "v.npy").read_bytes())
        data[-42] ^= 1
        (tmp_path / "v.npy").write_bytes(data)
    else:
        vectors = np.load(tmp_path / "v.npy")
        np.save(tmp_path / "v.npy", vectors[[1, 0, *range(2, 97)]])
    with pytest.raises(BertkitError, match=r"v\.npy is damaged: its numbers do not agree with their SHA-256\. Make it"):
        search(StoredVectors(tmp_path / "v.npy"), "river", pipeline)


def test_vectors_of_another_model_or_tokenizer_are_refused(
    stored: StoredVectors, encoder: Bert, tokenizer: WordPiece, tmp_path: Path
) -> None:
    with torch.no_grad():
        encoder.token_embedding.weight[7, 7] += 1e-3
    save_model(tmp_path / "other", Model(encoder, {}), tokenizer, metadata={})
    with pytest.raises(BertkitError, match=r"v\.npy was made with another model than .*other: their vectors cannot be"):
        search(stored, "river", load(tmp_path / "other"))
    with torch.no_grad():
        encoder.token_embedding.weight[7, 7] -= 1e-3
    save_model(tmp_path / "other", Model(Bert(encoder.config), {}), tokenizer, metadata={})
    with pytest.raises(BertkitError, match="with another model"):
        search(stored, "river", load(tmp_path / "other"))


def test_the_same_weights_with_another_tokenizer_are_refused(
    stored: StoredVectors, pipeline: Pipeline, tokenizer: WordPiece, tmp_path: Path
) -> None:
    other = train([" ".join(reversed(text.split())) + " ox" for text in SENTENCES] * 5, vocab_size=90)
    save_model(tmp_path / "other", Model(pipeline.encoder, {}), other, metadata={})
    with pytest.raises(BertkitError, match="with another tokenizer"):
        search(stored, "river", load(tmp_path / "other"))


def test_the_same_model_in_another_folder_is_accepted(
    stored: StoredVectors, pipeline: Pipeline, tokenizer: WordPiece, tmp_path: Path
) -> None:
    save_model(tmp_path / "copy", Model(pipeline.encoder, {}), tokenizer, metadata={"kind": "a copy"})
    assert search(stored, "river", load(tmp_path / "copy")) == search(stored, "river", pipeline)


def test_numbers_that_are_not_finite_are_named(stored: StoredVectors, pipeline: Pipeline, tmp_path: Path) -> None:
    vectors = np.load(tmp_path / "v.npy")
    vectors[42, 3] = np.nan
    np.save(tmp_path / "v.npy", vectors)
    with pytest.raises(BertkitError, match=r"v\.npy, row 43: a number is not finite"):
        search(StoredVectors(tmp_path / "v.npy"), "river", pipeline)


@given(
    scores=arrays(np.int8, st.tuples(st.integers(1, 4), st.integers(1, 40)), elements=st.integers(-2, 2)),
    top_k=st.integers(1, 12),
    block=st.integers(1, 40),
)
def test_of_equal_cosines_the_first_rows_are_found(scores: NDArray[np.int8], top_k: int, block: int) -> None:
    cosines = scores.astype(np.float32) / 2
    blocks = [cosines[:, start : start + block] for start in range(0, cosines.shape[1], block)]
    stored = StoredVectors.__new__(StoredVectors)
    stored.path = Path("v.npy")
    with (
        patch.object(StoredVectors, "blocks", lambda stored: (part.T for part in blocks)),
        patch.object(search_module, "_cosines", lambda part, *_: part.T),
    ):
        rows, found = search_module._highest(stored, np.zeros((len(cosines), 1), dtype=np.float32), top_k)
    expected = np.argsort(-cosines, axis=1, kind="stable")[:, :top_k]
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_array_equal(found, np.take_along_axis(cosines, expected, axis=1))
