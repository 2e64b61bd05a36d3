"""embed and search from Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bertkit import api
from bertkit.errors import BertkitError


def test_vectors_are_written_and_searched(workspace: Path, tmp_path: Path) -> None:
    output = tmp_path / "v.npy"
    record = api.embed(workspace / "run", workspace / "reviews.csv", output=output, progress="quiet", layers=(0, -1))
    assert (record.rows, record.dimension, record.text) == (99, 12, "review")
    assert record.settings.layers == (0, -1)
    assert np.load(output).shape == (99, 12)
    found = api.search(output, "river stone", model=workspace / "run", texts=workspace / "reviews.csv", top_k=3)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    assert all(each.text for each in found)


def test_a_parquet_file_has_its_own_texts(workspace: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    output = tmp_path / "v.parquet"
    api.embed(workspace / "run", workspace / "reviews.csv", output=output, progress="quiet", normalize=True)
    (best,) = api.search(output, "river stone", model=workspace / "run", top_k=1)
    assert best.text
    assert best.text in (workspace / "reviews.csv").read_text()


def test_layers_are_numbers_with_commas(workspace: Path, tmp_path: Path) -> None:
    with pytest.raises(
        BertkitError, match='layers is "last"; it must be whole numbers with commas, such as -4,-3,-2,-1'
    ):
        api.embed(workspace / "run", workspace / "reviews.csv", output=tmp_path / "v.npy", layers="last")
    with pytest.raises(BertkitError, match="layer 9 does not exist: the model has 1 layer,"):
        api.embed(workspace / "run", workspace / "reviews.csv", output=tmp_path / "v.npy", layers="-1,9")
    assert not list(tmp_path.iterdir())
