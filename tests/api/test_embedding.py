"""embed and search from Python."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from tests.formats.memory_tables import frame

import bertkit
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.sentence_transformers import SentenceEmbedding
from bertkit.errors import BertkitError


def test_vectors_are_written_and_searched(workspace: Path, tmp_path: Path) -> None:
    output = tmp_path / "v.npy"
    record = bertkit.embed(
        workspace / "run", workspace / "reviews.csv", output=output, progress="quiet", layers=(0, -1)
    )
    assert (record.rows, record.dimension, record.text) == (99, 12, "review")
    assert record.settings.layers == (0, -1)
    assert np.load(output).shape == (99, 12)
    found = bertkit.search(output, "river stone", model=workspace / "run", texts=workspace / "reviews.csv", top_k=3)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    assert all(each.text for each in found)


def test_a_loaded_model_searches_for_many_queries_in_a_table_in_memory(workspace: Path, tmp_path: Path) -> None:
    output = tmp_path / "v.npy"
    with (workspace / "reviews.csv").open(encoding="utf-8", newline="") as file:
        texts = [row["review"] for row in csv.DictReader(file)]
    table = frame(review=texts)
    bertkit.embed(workspace / "run", table, text="review", output=output, progress="quiet")
    found = bertkit.search(
        output, [texts[42], "river stone"], model=bertkit.load(workspace / "run"), texts=table, top_k=3
    )
    assert [each.query for each in found] == [texts[42]] * 3 + ["river stone"] * 3
    assert found[0].text == texts[42]
    alone = bertkit.search(output, "river stone", model=workspace / "run", texts=workspace / "reviews.csv", top_k=3)
    assert [(each.row, each.text) for each in found[3:]] == [(each.row, each.text) for each in alone]


def test_what_is_no_model_and_no_query_is_refused(workspace: Path, tmp_path: Path) -> None:
    output = tmp_path / "v.npy"
    bertkit.embed(workspace / "run", workspace / "reviews.csv", output=output, progress="quiet")
    with pytest.raises(BertkitError, match="query is empty: give at least one"):
        bertkit.search(output, [], model=workspace / "run")
    with pytest.raises(BertkitError, match="model is 3; it must be Path or str or LoadedModel"):
        bertkit.search(output, "river", model=cast(Path, 3))


def test_a_parquet_file_has_its_own_texts(workspace: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    output = tmp_path / "v.parquet"
    bertkit.embed(workspace / "run", workspace / "reviews.csv", output=output, progress="quiet", normalize=True)
    (best,) = bertkit.search(output, "river stone", model=workspace / "run", top_k=1)
    assert best.text
    assert best.text in (workspace / "reviews.csv").read_text()


def test_layers_are_numbers_with_commas(workspace: Path, tmp_path: Path) -> None:
    with pytest.raises(
        BertkitError, match='layers is "last"; it must be whole numbers with commas, such as -4,-3,-2,-1'
    ):
        bertkit.embed(workspace / "run", workspace / "reviews.csv", output=tmp_path / "v.npy", layers="last")
    with pytest.raises(BertkitError, match="layer 9 does not exist: the model has 1 layer,"):
        bertkit.embed(workspace / "run", workspace / "reviews.csv", output=tmp_path / "v.npy", layers="-1,9")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("normalize", [None, True, False])
def test_what_is_said_of_the_length_of_vectors_overrules_the_model(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, normalize: bool | None
) -> None:
    monkeypatch.setattr(ModelFolder, "embedding", SentenceEmbedding(normalize=True))
    made = bertkit.embed(
        workspace / "run", workspace / "reviews.csv", output=tmp_path / "v.npy", progress="quiet", normalize=normalize
    )
    assert made.settings.normalize is (normalize is not False)


def test_an_encoding_without_texts_is_refused(workspace: Path, tmp_path: Path) -> None:
    output = tmp_path / "v.npy"
    bertkit.embed(workspace / "run", workspace / "reviews.csv", output=output, progress="quiet")
    with pytest.raises(
        BertkitError, match="encoding is for the file of texts, and none is named: give texts, or leave"
    ):
        bertkit.search(output, "river", model=workspace / "run", encoding="cp1252")
