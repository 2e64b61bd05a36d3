"""Fixtures: a tiny pre-training run with two phases, a tiny model with random weights, and a table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.tiny_runs import model as model
from tests.tiny_runs import no_pictures as no_pictures
from tests.tiny_runs import table as table

from bertkit.data.prepare import prepare
from bertkit.data.shards import TOKENIZER
from bertkit.encoders.bert import size
from bertkit.pretraining.record import PretrainRun
from bertkit.text import wordpiece
from bertkit.text.loading import load_tokenizer

SENTENCES = ["Seven wide rivers ran slowly.", "The old mill stood still.", "A miller counts coins.", "It was dawn."]


@pytest.fixture
def run(tmp_path: Path) -> PretrainRun:
    """A BERT on 99 short documents: 7 steps on rows of 13 tokens, then 3 on rows of 41."""
    texts = [" ".join(SENTENCES[number % 3 :] * (2 + number % 5)) for number in range(99)]
    file = tmp_path / "texts.jsonl"
    file.write_text("\n".join(json.dumps({"text": text}) for text in texts))
    tokenizer = wordpiece.train(texts, vocab_size=99)
    prepare([file], tokenizer=tokenizer, output=tmp_path / "data", heldout=0.3)
    return PretrainRun(
        data=tmp_path / "data",
        output=tmp_path / "run",
        encoder=size("1/14/2", vocab_size=tokenizer.vocab_size, max_positions=41),
        steps=10,
        seq_length=13,
        long_seq_length=41,
        long_share=0.3,
        batch_size=7,
        evaluate_every=5,
        log_every=1,
        precision="float32",
    )


@pytest.fixture
def mixed(run: PretrainRun, tmp_path: Path) -> PretrainRun:
    """The same run on 75 % of rows from its corpus and 25 % from another one, ``books``."""
    file = tmp_path / "books.jsonl"
    texts = [" ".join(SENTENCES[number % 2 :: 2] * (1 + number % 7)) for number in range(40)]
    file.write_text("\n".join(json.dumps({"text": text}) for text in texts))
    prepare([file], tokenizer=load_tokenizer(run.data / TOKENIZER), output=tmp_path / "books", heldout=0.3)
    return replace(run, mix={str(tmp_path / "books"): 0.25})
