from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bertkit.config.records import to_plain
from bertkit.errors import BertkitError
from bertkit.inference import embedding_store
from bertkit.inference.embedding import EmbeddingSettings
from bertkit.inference.embedding_store import EmbeddingRecord, StoredVectors, check_suffix, record_path, write_parquet
from bertkit.storage.checksums import write_checked

VECTORS = np.random.default_rng(7).standard_normal((37, 5)).astype(np.float32)
RECORD = EmbeddingRecord(
    encoder="e1",
    tokenizer="t1",
    settings=EmbeddingSettings(pool="cls", layers=(-1, 2), normalize=True),
    max_length=41,
    precision="float32",
    rows=37,
    dimension=5,
    text="review",
)


def write_array(path: Path, record: EmbeddingRecord = RECORD) -> Path:
    np.save(path, VECTORS)
    write_checked(record_path(path), to_plain(record))
    return path


@pytest.mark.parametrize("name", ["v.npy", "v.parquet"])
def test_vectors_and_their_record_are_read_again_in_blocks(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_store, "BLOCK_BYTES", 4 * 5 * 11)
    path = tmp_path / name
    if name == "v.npy":
        write_array(path)
    else:
        pytest.importorskip("pyarrow")
        write_parquet(path, RECORD, (f"text {row}" for row in range(37)), VECTORS)
    stored = StoredVectors(path)
    assert stored.record == RECORD
    assert stored.holds_texts == (name == "v.parquet")
    blocks = list(stored.blocks())
    assert [len(block) for block in blocks] == [11, 11, 11, 4]
    np.testing.assert_array_equal(np.concatenate(blocks), VECTORS)


def test_half_of_a_character_does_not_stop_the_writing_of_all_others(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    texts = ["half \ud83d", *(f"text {row}" for row in range(1, 37))]
    write_parquet(tmp_path / "v.parquet", RECORD, texts, VECTORS)
    assert parquet.read_table(tmp_path / "v.parquet")["review"][0].as_py() == "half ?"
    assert StoredVectors(tmp_path / "v.parquet").record == RECORD


def test_a_file_that_is_cut_off_is_an_error(tmp_path: Path) -> None:
    path = write_array(tmp_path / "v.npy")
    whole = path.read_bytes()
    for size in (0, 3, 60, len(whole) - 20):
        path.write_bytes(whole[:size])
        with pytest.raises(BertkitError, match=r"v\.npy is not a complete \.npy file.*Make it again"):
            StoredVectors(path)


@pytest.mark.parametrize("content", [b"PK\x03\x04" + bytes(60), b"(-7, 5)", b"((37, 5"])
def test_a_file_that_only_looks_like_an_array_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = write_array(tmp_path / "v.npy")
    path.write_bytes(path.read_bytes().replace(b"(37, 5)", content) if content.startswith(b"(") else content)
    with pytest.raises(BertkitError, match=r"v\.npy is not a complete \.npy file.*Make it again"):
        StoredVectors(path)


def test_parquet_that_is_cut_off_or_not_made_by_embed_is_an_error(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "v.parquet"
    pandas.DataFrame({"text": ["a"]}).to_parquet(path)
    with pytest.raises(BertkitError, match="has no vectors that bertkit made"):
        StoredVectors(path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(BertkitError, match="is not a readable Parquet file"):
        StoredVectors(path)


def test_an_array_needs_its_own_intact_record(tmp_path: Path) -> None:
    path = write_array(tmp_path / "v.npy", replace(RECORD, rows=36))
    with pytest.raises(BertkitError, match=r"has 37 x 5 numbers, and its record 36 x 5"):
        StoredVectors(path)
    record_path(path).write_text(record_path(path).read_text().replace('"cls"', '"max"'))
    with pytest.raises(BertkitError, match=r"v\.npy\.json is damaged"):
        StoredVectors(path)
    record_path(path).unlink()
    with pytest.raises(BertkitError, match=r"has no v\.npy\.json beside it, which says what made the vectors"):
        StoredVectors(path)


def test_arrays_of_other_types_and_pickles_are_errors(tmp_path: Path) -> None:
    path = write_array(tmp_path / "v.npy")
    np.save(path, VECTORS.astype(np.float64))
    with pytest.raises(BertkitError, match="no table of float32 numbers, but float64 in 2 dimensions"):
        StoredVectors(path)
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(BertkitError, match=r"is not a complete \.npy file"):
        StoredVectors(path)


def test_other_suffixes_and_missing_files_are_errors(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r'no format named "\.npz".* There are: \.npy and \.parquet'):
        check_suffix(tmp_path / "v.npz")
    with pytest.raises(BertkitError, match="no file of vectors at"):
        StoredVectors(tmp_path / "v.npy")
