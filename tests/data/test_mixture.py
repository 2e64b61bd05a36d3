from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.data.numbered_corpus import corpus

from bertkit.data.mixture import MixedRows, Mixture
from bertkit.data.prepare import prepare
from bertkit.data.segments import RowSegments
from bertkit.data.shards import Corpus
from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.text import wordpiece


class NumberedRows:
    """Row ``index`` of epoch ``epoch`` is the text (name, epoch, index)."""

    def __init__(self, name: int, count: int) -> None:
        self.name, self.count = name, count

    def __len__(self) -> int:
        return self.count

    def segments(self, epoch: int, indices: NDArray[np.int64]) -> list[RowSegments]:
        return [RowSegments(np.array([self.name, epoch, index])) for index in indices.tolist()]


def read(rows: MixedRows, epoch: int, indices: NDArray[np.int64] | None = None) -> list[tuple[int, ...]]:
    """(corpus, its epoch, its row) of each row."""
    chosen = np.arange(len(rows)) if indices is None else indices
    return [tuple(each.first.tolist()) for each in rows.segments(epoch, chosen)]


SIZES = (101, 37, 13)
SHARES = (0.5, 0.3, 0.2)


def mixed(seed: int = 5) -> MixedRows:
    return MixedRows([NumberedRows(*each) for each in enumerate(SIZES)], SHARES, seed=seed)


def test_every_epoch_has_the_shares_exactly() -> None:
    rows = mixed()
    assert len(rows) == sum(SIZES)
    for epoch in range(4):
        counts = np.bincount([name for name, _, _ in read(rows, epoch)]).tolist()
        assert counts == [round(share * sum(SIZES)) for share in SHARES] == rows.counts
    assert rows.passes == pytest.approx([76 / 101, 45 / 37, 30 / 13], abs=0.02)


def test_a_corpus_gives_all_of_its_rows_before_it_repeats_one() -> None:
    rows = mixed()
    found = [row for epoch in range(7) for row in read(rows, epoch)]
    assert len(set(found)) == len(found)
    for name, size in enumerate(SIZES):
        own = [(epoch, index) for each, epoch, index in found if each == name]
        complete = len(own) // size
        assert complete >= 4
        for epoch in range(complete):
            assert {index for each, index in own if each == epoch} == set(range(size))
        assert max(epoch for epoch, _ in own) <= complete


def test_a_row_depends_on_seed_epoch_and_index_alone() -> None:
    everything = read(mixed(), 3)
    some = np.array([140, 2, 77, 3, 2])
    assert read(mixed(), 3, some) == [everything[index] for index in some]
    assert read(mixed(), 4) != everything != read(mixed(seed=6), 3)


def test_the_first_rows_are_of_all_corpora() -> None:
    """The evaluation reads the first rows of epoch 0."""
    counts = np.bincount([name for name, _, _ in read(mixed(), 0, np.arange(70))], minlength=3) / 70
    assert counts == pytest.approx(SHARES, abs=0.12)


def test_the_smallest_share_gives_a_row() -> None:
    rows = MixedRows([NumberedRows(0, 7), NumberedRows(1, 7)], (0.999, 0.001), seed=0)
    assert rows.counts == [14, 1]
    assert {name for name, _, _ in read(rows, 0)} == {0, 1}


def test_the_joined_text_has_every_token_once() -> None:
    first, second = corpus([3, 5], [7]), corpus([11])
    joined = Mixture((first, second), (0.3, 0.7)).joined()
    assert (joined.num_tokens, joined.num_documents, len(joined.shards)) == (26, 3, 2)
    assert Mixture((first,)).joined() is first


def test_corpora_with_too_few_documents_are_left_out() -> None:
    first, second = corpus([3, 5], [7]), corpus([11])
    mixture = Mixture((first, second), (0.3, 0.7))
    left = mixture.with_documents(2)
    assert left is not None
    assert (left.corpora, left.shares) == ((first,), (0.3,))
    assert mixture.with_documents(3) is None


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Two corpora of one tokenizer, and one of another."""
    texts = ["The old mill stood still. It was dawn.", "A miller counts coins. Seven rivers ran."]
    found = []
    for number, text in enumerate([*texts, texts[0]]):
        file = tmp_path / f"{number}.txt"
        file.write_text("\n\n".join(f"{text} {text}" for _ in range(9)))
        tokenizer = wordpiece.train(texts if number < 2 else ["elsewhere"], vocab_size=60)
        prepare([file], tokenizer=tokenizer, output=tmp_path / f"data-{number}")
        found.append(tmp_path / f"data-{number}")
    return found[0], found[1], found[2]


def test_folders_are_opened_with_their_shares(folders: tuple[Path, Path, Path]) -> None:
    mixture = Mixture.open([(folders[0], 0.75), (folders[1], 0.25)])
    assert [each.folder for each in mixture.corpora] == [*folders[:2]]
    assert mixture.shares == (0.75, 0.25)
    assert mixture.num_tokens == sum(Corpus.open(folder).num_tokens for folder in folders[:2])
    shard = next(iter(mixture.corpora[1].stamps))
    shard.touch()
    with pytest.raises(BertkitError, match=shard.name):
        mixture.check_untouched()


def test_another_tokenizer_is_refused(folders: tuple[Path, Path, Path]) -> None:
    message = r"data-2 was prepared with another tokenizer than .*data-0; prepare it with --tokenizer .*tokenizer"
    with pytest.raises(BertkitError, match=message) as caught:
        Mixture.open([(folders[0], 0.75), (folders[2], 0.25)])
    assert caught.value.exit_code == WRONG_USAGE


def test_a_folder_that_is_named_twice_is_refused(folders: tuple[Path, Path, Path], tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folders[0])
    with pytest.raises(BertkitError, match="link is named twice") as caught:
        Mixture.open([(folders[0], 0.75), (folders[1], 0.1), (tmp_path / "link", 0.15)])
    assert caught.value.exit_code == WRONG_USAGE


def test_a_missing_folder_is_refused(folders: tuple[Path, Path, Path]) -> None:
    with pytest.raises(BertkitError, match="no data at"):
        Mixture.open([(folders[0], 0.75), (folders[0].parent / "nowhere", 0.25)])
