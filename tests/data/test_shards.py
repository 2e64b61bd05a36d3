"""Shards and manifests on disk: writing, reading, and errors for damage."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from bertkit.data.shards import (
    FORMAT,
    JOB,
    MANIFEST,
    TOKENIZER,
    Corpus,
    CorpusSplit,
    Manifest,
    Shard,
    ShardRecord,
    SourceRecord,
    read_manifest,
    write_manifest,
    write_shard,
)
from bertkit.errors import BertkitError
from bertkit.storage.checksums import encode_checked, read_checked, sha256_of
from bertkit.text.wordpiece import train


def record(folder: Path, name: str, split: CorpusSplit, dtype: Any = np.uint16, *, tokens: int = 13) -> ShardRecord:
    """Write a shard of two documents: a sentence of 7 tokens, and two of 3 and the rest."""
    digest = write_shard(folder / name, np.arange(tokens, dtype=dtype), [0, 7, 10, tokens], [0, 1, 3])
    assert digest == sha256_of(folder / name)
    return ShardRecord(file=name, split=split, sha256=digest, tokens=tokens, sentences=3, documents=2)


def declare(folder: Path, *shards: ShardRecord) -> Manifest:
    source = SourceRecord(
        file="a.txt", bytes=99, sha256="0", boundary="file", sentence_lines=False, documents=4, replaced_characters=7
    )
    manifest = Manifest(
        tokenizer="fingerprint",
        vocab_size=99,
        shards=shards,
        tokens=sum(each.tokens for each in shards),
        sentences=sum(each.sentences for each in shards),
        documents=sum(each.documents for each in shards),
        unknown_tokens=1,
        empty_documents=0,
        duplicate_documents=0,
        sources=(source,),
    )
    write_manifest(folder, manifest)
    return manifest


@pytest.fixture
def data(tmp_path: Path) -> Path:
    shards = [record(tmp_path, f"train-{number}.safetensors", "train", tokens=13 + number) for number in range(3)]
    declare(tmp_path, *shards, record(tmp_path, "heldout-0.safetensors", "heldout", tokens=37))
    return tmp_path


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
def test_a_shard_is_read_as_written(tmp_path: Path, dtype: Any) -> None:
    path = tmp_path / "x.safetensors"
    write_shard(path, np.array([1, 65535, 3, 9, 7], dtype=dtype), [0, 2, 5], [0, 1, 2])
    shard = Shard.open(path)
    assert shard.tokens.tolist() == [1, 65535, 3, 9, 7]
    assert shard.tokens.dtype == dtype
    assert shard.sentence_offsets.tolist() == [0, 2, 5]
    assert shard.document_offsets.tolist() == [0, 1, 2]
    assert {name: array.tolist() for name, array in load_file(path).items()} == {
        "tokens": [1, 65535, 3, 9, 7],
        "sentence_offsets": [0, 2, 5],
        "document_offsets": [0, 1, 2],
    }


def test_a_shard_stays_on_disk_and_cannot_be_changed(data: Path) -> None:
    tokens = Shard.open(data / "train-0.safetensors").tokens
    assert type(tokens) is np.ndarray
    assert isinstance(tokens.base, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        tokens[0] = 1


def test_other_users_may_read_a_shard(data: Path) -> None:
    (data / "plain").touch()
    assert (data / "train-0.safetensors").stat().st_mode == (data / "plain").stat().st_mode


def test_a_corpus_is_one_split(data: Path) -> None:
    train, heldout = Corpus.open(data), Corpus.open(data, "heldout")
    assert (train.num_tokens, train.num_documents) == (13 + 14 + 15, 6)
    assert [len(shard.tokens) for shard in train.shards] == [13, 14, 15]
    assert (heldout.num_tokens, len(heldout.shards)) == (37, 1)
    assert train.folder == data
    assert train.manifest == read_manifest(data)
    assert train.manifest.heldout_tokens == 37


def test_the_manifest_as_lines_of_text(data: Path) -> None:
    lines = read_manifest(data).lines()
    assert "held out            37 tokens (46.84%)" in lines
    assert any(line.startswith("replaced characters 7") for line in lines)


@pytest.mark.parametrize("name", ["train-1.safetensors", "heldout-0.safetensors"])
def test_damage_is_an_error_of_its_split_only(data: Path, name: str) -> None:
    path = data / name
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)
    split: CorpusSplit = "train" if name.startswith("train") else "heldout"
    other: CorpusSplit = "heldout" if split == "train" else "train"
    with pytest.raises(BertkitError, match=f"{name} is damaged") as caught:
        Corpus.open(data, split)
    assert caught.value.exit_code == 3
    assert Corpus.open(data, other)
    assert Corpus.open(data, split, verify=False)


def test_swapped_and_missing_shards_are_named(data: Path) -> None:
    first, second = data / "train-0.safetensors", data / "train-1.safetensors"
    first.rename(data / "aside")
    with pytest.raises(BertkitError, match=r"train-0\.safetensors is missing"):
        Corpus.open(data)
    second.rename(first)
    (data / "aside").rename(second)
    for verify in (True, False):
        with pytest.raises(BertkitError, match=r"train-0\.safetensors"):
            Corpus.open(data, verify=verify)


def test_a_path_in_the_manifest_is_not_followed(data: Path) -> None:
    manifest = read_manifest(data)
    outside = dataclasses.replace(manifest.shards[0], file=f"../{data.name}/train-0.safetensors")
    declare(data, outside)
    with pytest.raises(BertkitError, match="is missing"):
        Corpus.open(data, verify=False)


def test_the_error_for_an_unfinished_folder_names_the_command(data: Path) -> None:
    (data / MANIFEST).unlink()
    (data / JOB).touch()
    with pytest.raises(BertkitError, match=r"unfinished\. Repeat its bertkit prepare command"):
        Corpus.open(data)
    with pytest.raises(BertkitError, match="Make it with: bertkit prepare"):
        Corpus.open(data / "nowhere")


def test_a_manifest_of_another_version_is_refused(data: Path) -> None:
    earlier = {**read_checked(data / MANIFEST), "format": 1}
    (data / MANIFEST).write_text(encode_checked(earlier))
    with pytest.raises(BertkitError, match=f"has format 1; this version of bertkit reads format {FORMAT}"):
        read_manifest(data)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": 1}', b"\xff"])
def test_a_broken_manifest_is_an_error(data: Path, content: bytes) -> None:
    (data / MANIFEST).write_bytes(content)
    with pytest.raises(BertkitError, match=MANIFEST) as caught:
        read_manifest(data)
    assert caught.value.exit_code == 3


def test_a_changed_number_in_the_manifest_is_an_error(data: Path) -> None:
    path = data / MANIFEST
    path.write_text(path.read_text().replace('"unknown_tokens": 1', '"unknown_tokens": 3'))
    with pytest.raises(BertkitError, match="does not agree with its own SHA-256"):
        read_manifest(data)


def test_a_replaced_tokenizer_is_an_error(data: Path) -> None:
    corpus = Corpus.open(data)
    tokenizer = train(["some words to learn"], vocab_size=37)
    tokenizer.save(data / TOKENIZER)
    with pytest.raises(BertkitError, match="is not the tokenizer that made the shards"):
        corpus.load_tokenizer()
    manifest = dataclasses.replace(corpus.manifest, tokenizer=tokenizer.fingerprint)
    assert dataclasses.replace(corpus, manifest=manifest).load_tokenizer().encode("words").ids == (
        tokenizer.encode("words").ids
    )


@pytest.mark.parametrize("keep", [0, 1, 7, 8, 60, 0.5, -1])
def test_a_truncated_shard_is_an_error_even_without_its_checksum(data: Path, keep: float) -> None:
    path = data / "train-0.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2 if keep == 0.5 else int(keep)])
    for verify in (True, False):
        with pytest.raises(BertkitError, match=r"train-0\.safetensors"):
            Corpus.open(data, verify=verify)


@pytest.mark.parametrize("place", range(3, 8))
def test_a_header_longer_than_its_shard_is_not_read_into_memory(data: Path, place: int) -> None:
    path = data / "train-0.safetensors"
    content = bytearray(path.read_bytes())
    content[place] ^= 64
    path.write_bytes(content)
    with pytest.raises(BertkitError, match=r"not a complete shard: its header would have [\d,]+ bytes"):
        Shard.open(path)


def test_a_folder_of_texts_is_not_a_prepared_corpus(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n")
    with pytest.raises(BertkitError, match=r"has texts, not token ids\. .*bertkit prepare /.* --tokenizer TOK"):
        read_manifest(tmp_path)


def test_any_other_folder_is_not_called_an_unfinished_corpus(tmp_path: Path) -> None:
    for name, message in (("", "so it is no prepared corpus"), ("a.md", "has texts, not token ids")):
        if name:
            (tmp_path / name).write_text("a\n")
        with pytest.raises(BertkitError, match=message):
            read_manifest(tmp_path)


@pytest.mark.parametrize(("name", "kind"), [("run.json", "a run"), ("tokenizer.json", "a tokenizer or a model")])
def test_another_folder_of_bertkit_is_not_a_prepared_corpus(tmp_path: Path, name: str, kind: str) -> None:
    for each in (name, "metrics.jsonl", "vocab.txt"):
        (tmp_path / each).touch()
    with pytest.raises(BertkitError, match=f"is {kind}, not a prepared corpus"):
        read_manifest(tmp_path)
