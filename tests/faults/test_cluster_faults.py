"""A preparation on a Ray cluster of two nodes, one of which dies: the shards have the same bytes as on one machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.ray_nodes import kill_second_node, two_nodes

from bertkit.data import work_units
from bertkit.data.prepare import prepare
from bertkit.data.sources import ReadOptions
from bertkit.errors import BertkitError
from bertkit.storage.checksums import sha256_of
from bertkit.text.wordpiece import train

TEXTS = [f"Number {number} is a short text. It has {number % 7} parts and ends here." for number in range(90)]

pytestmark = [pytest.mark.faults, pytest.mark.filterwarnings("ignore")]


def content(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): sha256_of(path) for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_node_that_dies_changes_no_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_units, "_UNIT_BYTES", 5_000)
    monkeypatch.chdir(tmp_path)
    tokenizer = train(TEXTS, vocab_size=99)
    Path("texts.jsonl").write_text("\n".join(json.dumps(f"{text} {at}") for at in range(30) for text in TEXTS))
    Path("bad.jsonl").write_bytes(b'"one"\n' * 1_000 + b'{"text"\n')
    files, lenient = [Path("texts.jsonl")], ReadOptions(on_bad_bytes="replace")
    expected = prepare(files, tokenizer=tokenizer, output=tmp_path / "expected", workers=1)
    reports = 0

    def kill_in_the_middle(done: int, total: int) -> None:
        nonlocal reports
        reports += 1
        if reports == 7:
            kill_second_node(cluster)

    with two_nodes() as cluster:
        made = prepare(files, tokenizer=tokenizer, output=Path("data"), engine="ray", report=kill_in_the_middle)
        assert reports > 30
        assert made == expected
        assert content(tmp_path / "data") == content(tmp_path / "expected")
        with pytest.raises(BertkitError, match=r"bad\.jsonl, line 1,001 is not JSON"):
            prepare([Path("bad.jsonl")], tokenizer=tokenizer, output=Path("bad"), reading=lenient, engine="ray")
