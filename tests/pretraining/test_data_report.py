"""What is measured of the examples before training starts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.data.numbered_corpus import DOCUMENTS, MANIFEST, corpus

from bertkit.data.mixture import Mixture
from bertkit.data.segments import Sampling
from bertkit.data.shards import Corpus, Shard
from bertkit.objective_settings import Masking
from bertkit.pretraining.data_report import report_data
from bertkit.pretraining.task import PretrainingTask
from bertkit.text.wordpiece import WordPiece


def test_rows_without_pairs_are_full_and_15_percent_is_masked(tmp_path: Path) -> None:
    tokens = [f"w{number}" for number in range(sum(map(sum, DOCUMENTS)))]
    (tmp_path / "vocab.txt").write_text("\n".join([*tokens, "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    task = PretrainingTask(objectives=("mlm",), sampling=Sampling(full_sentences=True))
    tokenizer = WordPiece.load(tmp_path / "vocab.txt")
    report = report_data(task.source(Mixture((corpus(*DOCUMENTS),)), tokenizer, seq_length=99, seed=5))
    assert report.examples_per_epoch == report.sampled
    assert report.row_fill > 0.9
    assert report.masked_share == pytest.approx(0.15, abs=0.02)
    assert (report.random_next_share, report.duplicate_rows, report.unknown_tokens) == (None, 0, 0)
    assert "next sentences      none" in report.lines()


@pytest.mark.parametrize(("sentences", "advised"), [([3], True), ([3, 4], False)])
def test_documents_of_one_sentence_are_said_to_have_no_next_one(
    tmp_path: Path, sentences: list[int], advised: bool
) -> None:
    tokens = [f"w{number}" for number in range(999 * sum(sentences))]
    (tmp_path / "vocab.txt").write_text("\n".join([*tokens, "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    task = PretrainingTask(objectives=("mlm", "nsp"))
    documents = Mixture((corpus(*[sentences] * 999),))
    report = report_data(task.source(documents, WordPiece.load(tmp_path / "vocab.txt"), seq_length=99, seed=5))
    assert any("no pair goes on" in line for line in report.lines()) == advised


UNKNOWN = 40


def make_corpus() -> Corpus:
    """Documents of seven tokens, of which the second and the fourth are the same, and the third has two sentences."""
    tokens = np.arange(35)
    tokens[21:28] = tokens[7:14]
    tokens[[0, 4, 30]] = UNKNOWN
    shard = Shard(
        tokens=tokens,
        sentence_offsets=np.array([0, 7, 14, 17, 21, 28, 35]),
        document_offsets=np.array([0, 1, 2, 4, 5, 6]),
    )
    return Corpus(folder=Path("DATA"), manifest=MANIFEST, shards=(shard,))


@pytest.mark.parametrize(
    ("objectives", "seq_length", "tokens"),
    [
        (("mlm",), 9, 4 * (1 + 7 + 1) + (1 + 4 + 1)),
        (("passages", "mlm"), 11, 4 * (2 + 7 + 2) + (2 + 4 + 2)),  # two rows for each example
    ],
)
def test_padding_is_not_counted_and_rows_are_compared_as_they_were_before_masking(
    tmp_path: Path, objectives: tuple[str, ...], seq_length: int, tokens: int
) -> None:
    """The vocabulary has no [PAD], so that padding has the id of unknown tokens.

    With this seed strides begin in the second sentence of the third document, whose row is shorter.
    """
    words = [f"w{number}" for number in range(UNKNOWN)]
    (tmp_path / "vocab.txt").write_text("\n".join([*words, "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    tokenizer = WordPiece.load(tmp_path / "vocab.txt")
    assert tokenizer.pad_id == tokenizer.unk_id == UNKNOWN
    sampling = Sampling(short_sequences=0.0)
    task = PretrainingTask(objectives=objectives, sampling=sampling, masking=Masking(rate=0.5))
    report = report_data(task.source(Mixture((make_corpus(),)), tokenizer, seq_length=seq_length, seed=5))
    assert (report.examples_per_epoch, report.sampled) == (5, 5)
    assert report.row_fill == pytest.approx(tokens / (5 * seq_length))
    assert report.duplicate_rows == pytest.approx(0.2)
    assert report.unknown_tokens == pytest.approx(3 / tokens)
