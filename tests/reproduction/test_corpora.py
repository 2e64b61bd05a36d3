"""The corpus of a reproduction: its text, vocabularies and shards."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bertkit.data.shards import read_manifest
from bertkit.errors import BertkitError
from bertkit.report.progress import Progress
from bertkit.reproduction.corpora import Corpora, find_corpus
from bertkit.reproduction.scales import SMOKE
from bertkit.scheduling import order_units, run_all

QUIET = Progress("quiet")


@pytest.fixture
def corpora(tmp_path: Path) -> Corpora:
    """Two folders of text, one much larger than the other."""
    for folder, lines in (("enwiki", 3000), ("books", 300)):
        (tmp_path / folder).mkdir()
        text = "".join(f"Sentence {number} of the {folder} folder is here.\n\n" for number in range(lines))
        (tmp_path / folder / "a.txt").write_text(text)
    files = (tmp_path / "enwiki" / "a.txt", tmp_path / "books" / "a.txt")
    scale = replace(SMOKE, corpus_megabytes=0.02, vocab_size=300)
    return Corpora(scale=scale, files=files, output=tmp_path / "out")


def test_text_is_taken_equally_from_every_folder(corpora: Corpora) -> None:
    run_all([corpora.text], corpora.output / "locks", QUIET)
    records = [json.loads(line)["text"] for line in (corpora.output / "corpus.jsonl").read_text().splitlines()]
    sizes = [sum(len(text) for text in records if folder in text) for folder in ("enwiki", "books")]
    assert sizes == pytest.approx([10_000, 10_000], rel=0.02)
    assert "".join(corpora.texts()).count("Sentence") == "".join(records).count("Sentence")


def test_all_of_the_corpus_is_read_from_its_own_files(corpora: Corpora) -> None:
    whole = replace(corpora, scale=replace(corpora.scale, corpus_megabytes=None))
    assert whole.text.is_done()
    assert not (corpora.output / "corpus.jsonl").exists()
    assert "".join(whole.texts()).count("Sentence") == 3300


def test_shards_are_prepared_with_the_vocabulary_of_their_kind(corpora: Corpora) -> None:
    unit = corpora.data("wordpiece")
    assert [each.name for each in order_units([unit])] == ["text", "tokenizer-wordpiece", "data-wordpiece"]
    assert run_all([unit], corpora.output / "locks", QUIET) == {}
    assert unit.is_done()
    manifest = read_manifest(corpora.folder_of_data("wordpiece"))
    assert 0 < manifest.vocab_size <= 300
    assert corpora.folder_of_tokenizer("wordpiece").is_dir()


def test_the_size_of_each_vocabulary_is_shown(corpora: Corpora, capsys: pytest.CaptureFixture[str]) -> None:
    run_all([corpora.tokenizer(kind) for kind in ("words", "bpe")], corpora.output / "locks", Progress("plain"))
    shown = capsys.readouterr().err
    assert "training a vocabulary of at most 3,000 (words)" in shown
    assert "training a vocabulary of at most 300 (bpe)" in shown


def test_vectors_of_a_file_need_no_training(corpora: Corpora, tmp_path: Path) -> None:
    assert corpora.file_of_vectors == corpora.output / "vectors.txt"
    assert not corpora.vectors.is_done()
    (tmp_path / "glove.txt").touch()
    given = replace(corpora, vectors_file=tmp_path / "glove.txt")
    assert given.file_of_vectors == tmp_path / "glove.txt"
    assert given.vectors.is_done()


def test_corpus_is_found_below_the_data_folder(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r"corpora has no enwiki\* and no books/\*\. Name the corpus: --corpus"):
        find_corpus(tmp_path)
    (tmp_path / "corpora" / "books").mkdir(parents=True)
    for name in ("enwiki.jsonl", "books/a.txt", "other.txt"):
        (tmp_path / "corpora" / name).touch()
    assert [path.name for path in find_corpus(tmp_path)] == ["enwiki.jsonl", "a.txt"]
