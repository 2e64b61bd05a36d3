"""Preparation: complete text, the same bytes for any number of workers, and folders of others left unchanged."""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from bertkit.batch import id_of
from bertkit.data import shard_writer, sources, work_units
from bertkit.data.cleaning import Cleaning
from bertkit.data.prepare import prepare
from bertkit.data.shards import JOB, MANIFEST, Corpus, CorpusSplit, DroppedRecord, Manifest, Shard
from bertkit.data.sources import ReadOptions, read_chunks
from bertkit.errors import BertkitError
from bertkit.storage.checksums import sha256_of
from bertkit.storage.locks import exclusive_lock
from bertkit.storage.remote import to_path
from bertkit.text import bpe, byte_bpe, wordpiece, words
from bertkit.text.wordpiece import WordPiece, train

pytestmark = pytest.mark.usefixtures("without_shape_checks")

WORDS = ("the", "cat", "slept", "on", "a", "mat", "and", "it", "saw", "three", "dogs", "run", "from", "[MASK]", "house")
PARAGRAPHS = [
    " ".join(["One", *(WORDS[(number * step) % len(WORDS)] for step in range(1, 2 + number % 11))]) + "."
    for number in range(400)
]


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Several shards, units and chunks out of a few kilobytes."""
    monkeypatch.setattr(shard_writer, "_SHARD_TOKENS", 700)
    monkeypatch.setattr(work_units, "_UNIT_BYTES", 500)
    monkeypatch.setattr(sources, "MAX_CHUNK_CHARACTERS", 200)
    yield


@pytest.fixture(scope="module")
def tokenizer() -> WordPiece:
    return train(PARAGRAPHS, vocab_size=99)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Forty records, one book of many chunks, and four documents of two lines each."""
    records = [json.dumps({"text": " ".join(PARAGRAPHS[at : at + 3])}) for at in range(0, 120, 3)]
    texts = {
        "a.jsonl": "\n".join(records),
        "b.txt": "\n\n".join(" ".join(PARAGRAPHS[at : at + 3]) for at in range(120, 300, 3)),
        "c.txt": "\n\n".join("\n".join(PARAGRAPHS[at : at + 2]) for at in range(300, 308, 2)),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return [tmp_path / name for name in texts]


def content(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): sha256_of(path) for path in sorted(folder.rglob("*")) if path.is_file()}


def sentences(folder: Path, split: CorpusSplit) -> list[list[list[int]]]:
    """The ids of every sentence of every document."""
    return [
        [
            shard.tokens[shard.sentence_offsets[at] : shard.sentence_offsets[at + 1]].tolist()
            for at in range(*shard.document_offsets[number : number + 2].tolist())
        ]
        for shard in Corpus.open(folder, split).shards
        for number in range(len(shard.document_offsets) - 1)
    ]


def test_every_sentence_is_in_the_shards_in_order(tmp_path: Path, files: list[Path], tokenizer: WordPiece) -> None:
    manifest = prepare(files, tokenizer=tokenizer, output=tmp_path / "data", heldout=0)
    expected = [
        tokenizer.encode(sentence).ids
        for file in files
        for chunk in read_chunks(file)
        for sentence in chunk.sentences()
    ]
    found = sentences(tmp_path / "data", "train")
    assert [ids for document in found for ids in document] == expected
    assert len(manifest.shards) > 3
    assert manifest.documents == 40 + 1 + 4
    assert manifest.sentences == len(expected)
    assert manifest.tokens == sum(map(len, expected))
    assert manifest.unknown_tokens == sum(ids.count(tokenizer.unk_id) for ids in expected)
    assert not any(tokenizer.mask_id in ids for ids in expected)
    assert [len(document) for document in found[:40]] == [3] * 40
    # The book crosses the boundaries of shards, and counts as a document in each.
    assert len(found) == sum(record.documents for record in manifest.shards) > manifest.documents


def test_the_manifest_describes_the_input(tmp_path: Path, files: list[Path], tokenizer: WordPiece) -> None:
    manifest = prepare(files, tokenizer=tokenizer, output=tmp_path / "data")
    assert Corpus.open(tmp_path / "data").manifest == manifest
    assert manifest.tokenizer == tokenizer.fingerprint
    assert WordPiece.load(tmp_path / "data" / "tokenizer").fingerprint == tokenizer.fingerprint
    assert [(each.boundary, each.sentence_lines, each.documents) for each in manifest.sources] == [
        ("record", False, 40),
        ("file", False, 1),
        ("blank-line", True, 4),
    ]
    assert [each.sha256 for each in manifest.sources] == [sha256_of(file) for file in files]
    names = {record.file for record in manifest.shards}
    assert {path.name for path in (tmp_path / "data").iterdir()} == {*names, MANIFEST, JOB, "tokenizer"}


def test_the_number_of_workers_changes_no_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: list[Path], tokenizer: WordPiece
) -> None:
    # Workers are processes of their own, in which the length of chunks is the usual one.
    monkeypatch.setattr(sources, "MAX_CHUNK_CHARACTERS", 200_000)
    made = []
    for workers in (1, 2, 3):
        prepare(files, tokenizer=tokenizer, output=tmp_path / str(workers), workers=workers)
        made.append(content(tmp_path / str(workers)))
    assert made[0] == made[1] == made[2]
    assert len(Corpus.open(tmp_path / "1").shards) > 3


def test_a_compressed_file_gives_the_same_shards(tmp_path: Path, files: list[Path], tokenizer: WordPiece) -> None:
    compressed = [tmp_path / f"{file.name}.gz" for file in files]
    for file, path in zip(files, compressed, strict=True):
        path.write_bytes(gzip.compress(file.read_bytes()))
    plain = prepare(files, tokenizer=tokenizer, output=tmp_path / "plain", heldout=0)
    unpacked = prepare(compressed, tokenizer=tokenizer, output=tmp_path / "compressed", heldout=0)
    assert [each.tokens for each in unpacked.shards] == [each.tokens for each in plain.shards]
    assert sentences(tmp_path / "plain", "train") == sentences(tmp_path / "compressed", "train")


def test_remote_files_give_the_same_shards(tmp_path: Path, files: list[Path], tokenizer: WordPiece) -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    remote = [to_path(f"memory://corpus/{file.name}") for file in files]
    memory.pipe({str(path): file.read_bytes() for path, file in zip(remote, files, strict=True)})
    local = prepare(files, tokenizer=tokenizer, output=tmp_path / "local")
    manifest = prepare(remote, tokenizer=tokenizer, output=tmp_path / "remote")
    assert manifest.shards == local.shards
    assert [each.file for each in manifest.sources] == [f"memory://corpus/{file.name}" for file in files]
    assert [each.sha256 for each in manifest.sources] == [each.sha256 for each in local.sources]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        (b'{"text": "one"}\n', b'{"text": "two"\n', "texts.jsonl{gz}, line 201 is not JSON"),
        (b'"one"\n', b'{"text": "caf\xe9"}\n', "texts.jsonl{gz}, line 201: byte {byte} of the file is not UTF-8"),
        (b"It is one.\r\n", b"x\ry\ncaf\xe9", "texts.txt{gz}, line 203: byte {byte} of the file is not UTF-8"),
        (b"It is one.\r", b"caf\xe9", "texts.txt{gz}, line 201: byte {byte} of the file is not UTF-8"),
    ],
    ids=["json", "jsonl", "txt", "carriage returns"],
)
def test_an_error_has_its_place_in_the_file(
    tmp_path: Path, tokenizer: WordPiece, good: bytes, bad: bytes, message: str, compressed: bool, workers: int
) -> None:
    """Although the worker that finds it has not read the lines before."""
    path = tmp_path / message.partition("{")[0]
    content = good * 200 + bad
    if compressed:
        path = path.with_name(f"{path.name}.gz")
    path.write_bytes(gzip.compress(content) if compressed else content)
    with pytest.raises(BertkitError) as caught:
        prepare([path], tokenizer=tokenizer, output=tmp_path / "data", workers=workers)
    place = message.format(gz=".gz" if compressed else "", byte=f"{content.find(0xE9) + 1:,}")
    assert str(tmp_path / place) in str(caught.value)
    assert caught.value.exit_code == 3


def test_ids_take_two_bytes_or_four(tmp_path: Path, files: list[Path], tokenizer: WordPiece) -> None:
    prepare(files, tokenizer=tokenizer, output=tmp_path / "small")
    assert Corpus.open(tmp_path / "small").shards[0].tokens.dtype == np.uint16
    vocabulary = [*tokenizer.vocabulary, *(f"##{number:x}" for number in range(70_000))]
    (tmp_path / "vocab.txt").write_text("\n".join(dict.fromkeys(vocabulary)))
    large = WordPiece.load(tmp_path / "vocab.txt")
    assert large.vocab_size > 65_536
    prepare(files, tokenizer=large, output=tmp_path / "large")
    assert Corpus.open(tmp_path / "large").shards[0].tokens.dtype == np.uint32


SPLITS_AND_WHOLE: tuple[tuple[str, CorpusSplit], ...] = (("data", "heldout"), ("data", "train"), ("whole", "train"))


class TestHeldOut:
    @pytest.fixture(autouse=True)
    def larger_shards(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The blocks of the first shard decide what is held out of all, so that it must have enough of them."""
        monkeypatch.setattr(shard_writer, "_SHARD_TOKENS", 100_000)

    def documents(self, folder: Path, split: CorpusSplit) -> list[str]:
        return [str(document) for document in sentences(folder, split)]

    def prepare(self, folder: Path, texts: list[str], tokenizer: WordPiece, heldout: float = 0.01) -> Manifest:
        file = folder.with_suffix(".jsonl")
        file.write_text("\n".join(json.dumps(text) for text in texts))
        return prepare([file], tokenizer=tokenizer, output=folder, heldout=heldout)

    def test_nothing_is_held_out_of_a_tiny_corpus(self, tmp_path: Path, tokenizer: WordPiece) -> None:
        assert self.prepare(tmp_path / "data", PARAGRAPHS[30:33], tokenizer).heldout_tokens == 0

    @pytest.mark.parametrize("names", [("a.txt",), ("a.txt", "b.txt", "c.txt", "d.txt")])
    @pytest.mark.parametrize("share", [0.01, 0.1])
    def test_a_share_is_held_out_of_few_long_documents(
        self, tmp_path: Path, tokenizer: WordPiece, names: tuple[str, ...], share: float
    ) -> None:
        for seed, name in enumerate(names):
            order = np.random.default_rng(seed).integers(0, len(PARAGRAPHS), size=6000 // len(names))
            text = "\n\n".join(f"Line {at}. {PARAGRAPHS[number]}" for at, number in enumerate(order))
            (tmp_path / name).write_text(text)
        files = [tmp_path / name for name in names]
        manifest = prepare(files, tokenizer=tokenizer, output=tmp_path / "data", heldout=share)
        assert manifest.documents == len(names)
        assert manifest.heldout_tokens / manifest.tokens == pytest.approx(share, rel=0.35)
        assert Corpus.open(tmp_path / "data", "heldout").num_documents >= 2
        prepare(files, tokenizer=tokenizer, output=tmp_path / "whole", heldout=0)
        held, kept, whole = (
            Counter(map(tuple, chain.from_iterable(sentences(tmp_path / folder, split))))
            for folder, split in SPLITS_AND_WHOLE
        )
        assert held + kept == whole, "every sentence is in one split, once"

    def test_nothing_is_held_out_on_request(self, tmp_path: Path, tokenizer: WordPiece) -> None:
        assert self.prepare(tmp_path / "data", PARAGRAPHS, tokenizer, 0).heldout_tokens == 0

    def test_the_held_out_share_is_as_requested_and_splits_are_disjoint(
        self, tmp_path: Path, tokenizer: WordPiece
    ) -> None:
        texts = [f"{first} {second}" for first in PARAGRAPHS[:20] for second in PARAGRAPHS[20:50]]
        manifest = self.prepare(tmp_path / "data", texts + texts, tokenizer, 0.2)
        assert 0.15 < manifest.heldout_tokens / manifest.tokens < 0.25
        assert manifest.duplicate_documents >= len(texts)
        held, kept = (self.documents(tmp_path / "data", split) for split in ("heldout", "train"))
        assert len(held) + len(kept) == manifest.documents
        assert not set(held) & set(kept)

    def test_more_documents_do_not_change_the_split_of_a_document(self, tmp_path: Path, tokenizer: WordPiece) -> None:
        texts = [f"{first} {second}" for first in PARAGRAPHS[:30] for second in PARAGRAPHS[20:50]]
        self.prepare(tmp_path / "few", texts[::2], tokenizer, 0.3)
        self.prepare(tmp_path / "all", texts, tokenizer, 0.3)
        assert set(self.documents(tmp_path / "few", "heldout")) <= set(self.documents(tmp_path / "all", "heldout"))


def test_empty_documents_are_skipped_and_counted(tmp_path: Path, tokenizer: WordPiece) -> None:
    file = tmp_path / "a.jsonl"
    texts = ["", "The cat sat.", "  \n ", "\u200b\x01", "The cat sat. ", "A dog."]
    file.write_text("\n".join(json.dumps(text) for text in texts))
    manifest = prepare([file], tokenizer=tokenizer, output=tmp_path / "data")
    assert (manifest.documents, manifest.empty_documents, manifest.duplicate_documents) == (3, 3, 1)
    assert manifest.sources[0].documents == 6


def test_progress_grows_to_the_end(tmp_path: Path, files: list[Path], tokenizer: WordPiece) -> None:
    reports: list[tuple[int, int]] = []
    prepare(files, tokenizer=tokenizer, output=tmp_path / "data", report=lambda *each: reports.append(each))
    total = sum(file.stat().st_size for file in files)
    assert len(reports) > 5
    assert reports == sorted(reports)
    assert reports[-1] == (total, total)
    assert {total_bytes for _, total_bytes in reports} == {total}


def test_progress_includes_the_search_for_documents_to_drop(
    tmp_path: Path, files: list[Path], tokenizer: WordPiece
) -> None:
    reports: list[tuple[int, int]] = []
    prepare(
        files,
        tokenizer=tokenizer,
        output=tmp_path / "data",
        cleaning=Cleaning(duplicates="exact"),
        report=lambda *each: reports.append(each),
    )
    size = sum(file.stat().st_size for file in files)
    assert reports == sorted(reports)
    assert sum(done <= size for done, _ in reports) > 40, "a report per chunk of the first pass"
    assert reports[-1] == (2 * size, 2 * size)
    assert {total for _, total in reports} == {2 * size}


class TestFolders:
    def test_repeating_the_command_changes_nothing(
        self, tmp_path: Path, files: list[Path], tokenizer: WordPiece
    ) -> None:
        first = prepare(files, tokenizer=tokenizer, output=tmp_path / "data")
        times = {path: path.stat().st_mtime_ns for path in (tmp_path / "data").iterdir()}
        assert prepare(files, tokenizer=tokenizer, output=tmp_path / "data") == first
        assert times == {path: path.stat().st_mtime_ns for path in (tmp_path / "data").iterdir()}

    @pytest.mark.parametrize("change", ["files", "tokenizer", "heldout", "reading", "content"])
    def test_another_corpus_is_never_overwritten(
        self, tmp_path: Path, files: list[Path], tokenizer: WordPiece, change: str
    ) -> None:
        prepare(files, tokenizer=tokenizer, output=tmp_path / "data")
        before = content(tmp_path / "data")
        if change == "content":
            files[0].write_text(files[0].read_text().replace("cat", "rat"))
        with pytest.raises(BertkitError, match=f"corpus with other {change.replace('content', 'files')}") as caught:
            prepare(
                files[::-1] if change == "files" else files,
                tokenizer=tokenizer.add_tokens(["xyzzy"]) if change == "tokenizer" else tokenizer,
                output=tmp_path / "data",
                heldout=0.5 if change == "heldout" else 0.01,
                reading=ReadOptions(on_bad_bytes="replace" if change == "reading" else "error"),
            )
        assert caught.value.exit_code == 2
        assert content(tmp_path / "data") == before

    def test_a_job_that_finished_no_shard_can_be_corrected(
        self, tmp_path: Path, files: list[Path], tokenizer: WordPiece
    ) -> None:
        files[0].write_bytes(b'{"text": "caf\xe9"}\n' + files[0].read_bytes())
        with pytest.raises(BertkitError, match="is not UTF-8"):
            prepare(files, tokenizer=tokenizer, output=tmp_path / "data")
        lenient = ReadOptions(on_bad_bytes="replace")
        manifest = prepare(files, tokenizer=tokenizer, output=tmp_path / "data", reading=lenient)
        assert manifest.replaced_characters == 1

    def test_a_folder_with_other_files_is_unchanged(
        self, tmp_path: Path, files: list[Path], tokenizer: WordPiece
    ) -> None:
        output = tmp_path / "data"
        output.mkdir()
        (output / "thesis.doc").write_text("precious")
        (output / ".bertkit-tmp-mine").write_text("precious")
        with pytest.raises(BertkitError, match="is not empty and was not made by bertkit prepare"):
            prepare(files, tokenizer=tokenizer, output=output)
        assert len(list(output.iterdir())) == 2

    def test_a_job_file_of_another_program_is_unchanged(
        self, tmp_path: Path, files: list[Path], tokenizer: WordPiece
    ) -> None:
        output = tmp_path / "data"
        output.mkdir()
        (output / JOB).write_text('{"mine": 1}')
        with pytest.raises(BertkitError, match="was not written by bertkit prepare"):
            prepare(files, tokenizer=tokenizer, output=output)
        assert (output / JOB).read_text() == '{"mine": 1}'

    def test_two_processes_cannot_write_to_one_folder(
        self, tmp_path: Path, files: list[Path], tokenizer: WordPiece
    ) -> None:
        output = tmp_path / "data"
        output.mkdir()
        with exclusive_lock(output), pytest.raises(BertkitError, match="is being written by another process"):
            prepare(files, tokenizer=tokenizer, output=output)
        assert prepare(files, tokenizer=tokenizer, output=output)

    def test_a_damaged_shard_is_made_again(self, tmp_path: Path, files: list[Path], tokenizer: WordPiece) -> None:
        output = tmp_path / "data"
        prepare(files, tokenizer=tokenizer, output=output)
        before = content(output)
        (output / "train-00001.safetensors").write_bytes(b"torso")
        prepare(files, tokenizer=tokenizer, output=output)
        assert content(output) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"files": []}, "at least one text file"),
    ],
)
def test_bad_options_are_an_error(
    tmp_path: Path, files: list[Path], tokenizer: WordPiece, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(BertkitError, match=message) as caught:
        prepare(**{"files": files, "tokenizer": tokenizer, "output": tmp_path / "data", **options})
    assert caught.value.exit_code == 2
    assert not (tmp_path / "data").exists()


def test_naming_a_file_twice_is_an_error(tmp_path: Path, files: list[Path], tokenizer: WordPiece) -> None:
    with pytest.raises(BertkitError, match=r"a\.jsonl is named 2 times"):
        prepare([files[0], *files], tokenizer=tokenizer, output=tmp_path / "data")
    (tmp_path / "other").mkdir()
    with pytest.raises(BertkitError, match=r"a\.jsonl is named 2 times"):
        prepare([tmp_path / "other" / ".." / files[0].name, *files], tokenizer=tokenizer, output=tmp_path / "data")


def test_real_text(tmp_path: Path, data_folder: Path) -> None:
    tokenizer = WordPiece.load(data_folder / "vocab" / "bert-base-uncased" / "vocab.txt")
    book = data_folder / "corpora" / "books" / "a-hunger-artist.txt.gz"
    manifest = prepare([book], tokenizer=tokenizer, output=tmp_path / "data")
    tokens = np.concatenate([shard.tokens for shard in Corpus.open(tmp_path / "data").shards])
    assert manifest.documents == 1
    assert "hunger artist" in tokenizer.decode(tokens[:500].tolist())


@pytest.mark.parametrize("kind", [wordpiece, bpe, byte_bpe, words], ids=lambda kind: kind.__name__.rpartition(".")[2])
def test_a_document_has_the_same_tokens_as_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: ModuleType
) -> None:
    """Also in byte-level BPE, where the space between two sentences belongs to the second."""
    monkeypatch.setattr(sources, "MAX_CHUNK_CHARACTERS", 20_000)
    (tmp_path / "texts.jsonl").write_text("\n".join(json.dumps({"text": f"{text} {text}"}) for text in PARAGRAPHS[:37]))
    trained = kind.train(PARAGRAPHS, vocab_size=299)
    prepare([tmp_path / "texts.jsonl"], tokenizer=trained, output=tmp_path / "data", heldout=0)
    corpus = Corpus.open(tmp_path / "data")
    assert corpus.load_tokenizer().fingerprint == trained.fingerprint
    found = [shard.tokens[begin:end].tolist() for shard in corpus.shards for begin, end in document_bounds(shard)]
    expected = [list(map(id_of, trained.encode(f"{text} {text}").ids)) for text in PARAGRAPHS[:37]]
    assert found == expected
    assert sum(len(shard.sentence_offsets) - 1 for shard in corpus.shards) == 2 * len(expected)


def document_bounds(shard: Shard) -> list[tuple[int, int]]:
    starts = shard.sentence_offsets[shard.document_offsets].tolist()
    return list(pairwise(starts))


def test_dropped_documents_are_not_in_the_shards_and_are_counted(tmp_path: Path, tokenizer: WordPiece) -> None:
    long = " ".join(WORDS[:13])
    file, dev = tmp_path / "a.jsonl", tmp_path / "dev.txt"
    kept = [PARAGRAPHS[number] for number in range(2, 22, 2)]
    file.write_text("\n".join(map(json.dumps, [kept[0], *kept, "", f"It is {long}.", kept[3]])))
    dev.write_text(long)
    plain = tmp_path / "plain.jsonl"
    plain.write_text("\n".join(map(json.dumps, kept)))
    cleaning = Cleaning(duplicates="exact", overlap=(dev,))
    manifest = prepare([file], tokenizer=tokenizer, output=tmp_path / "data", heldout=0, cleaning=cleaning)
    expected = prepare([plain], tokenizer=tokenizer, output=tmp_path / "plain", heldout=0)
    assert [each.sha256 for each in manifest.shards] == [each.sha256 for each in expected.shards]
    assert manifest.dropped == DroppedRecord(duplicates=2, overlaps=1)
    assert (manifest.documents, manifest.empty_documents, manifest.duplicate_documents) == (10, 1, 0)
    assert prepare([file], tokenizer=tokenizer, output=tmp_path / "data", heldout=0, cleaning=cleaning) == manifest
    with pytest.raises(BertkitError, match="holds a corpus with other reading"):
        prepare([file], tokenizer=tokenizer, output=tmp_path / "data", heldout=0)
    with pytest.raises(BertkitError, match="every document is dropped, empty or blank"):
        prepare([dev], tokenizer=tokenizer, output=tmp_path / "none", cleaning=cleaning)


@pytest.mark.parametrize("suffix", ["jsonl", "txt"])
def test_dropped_lines_are_not_in_the_shards_and_are_counted(tmp_path: Path, tokenizer: WordPiece, suffix: str) -> None:
    """With any number of workers, in records and in plain text, of which units are ranges of bytes."""
    menu = "One house, three dogs and a mat."

    def write(name: str, line: str) -> Path:
        texts = [f"{line * (number % 3 > 0)}{text}\n{text}" for number, text in enumerate(PARAGRAPHS[:60])]
        file = tmp_path / f"{name}.{suffix}"
        file.write_text("\n".join(map(json.dumps, texts)) if suffix == "jsonl" else "\n\n".join(texts))
        return file

    reading = ReadOptions(boundary="auto" if suffix == "jsonl" else "blank-line")
    expected = prepare([write("plain", "")], tokenizer=tokenizer, output=tmp_path / "plain", heldout=0, reading=reading)
    for workers in (1, 3):
        output = tmp_path / f"data-{workers}"
        manifest = prepare(
            [write("texts", f"{menu}\n")],
            tokenizer=tokenizer,
            output=output,
            heldout=0,
            workers=workers,
            reading=reading,
            cleaning=Cleaning(repeated_lines=40),
        )
        assert tokens_of(output) == tokens_of(tmp_path / "plain")
        assert manifest.dropped == DroppedRecord(lines=40)
        assert manifest.documents == expected.documents == 60


def tokens_of(folder: Path) -> list[int]:
    return [token for shard in Corpus.open(folder).shards for token in shard.tokens.tolist()]


def test_a_missing_cluster_leaves_no_folder(
    tmp_path: Path, files: list[Path], tokenizer: WordPiece, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "data"
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(BertkitError, match=r"--engine ray needs ray: pip install 'bertkit\[ray\]'"):
        prepare(files, tokenizer=tokenizer, output=output, engine="ray")
    monkeypatch.setitem(sys.modules, "ray", ModuleType("ray"))
    monkeypatch.setattr(sys.modules["ray"], "is_initialized", lambda: False, raising=False)
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    with pytest.raises(BertkitError, match=r"there is no Ray cluster at 127\.0\.0\.1:9"):
        prepare(files, tokenizer=tokenizer, output=output, engine="ray")
    assert not output.exists()
