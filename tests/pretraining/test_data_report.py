"""What is measured of the examples before training starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.data.numbered_corpus import DOCUMENTS, corpus

from bertkit.data.mixture import Mixture
from bertkit.data.segments import Sampling
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
