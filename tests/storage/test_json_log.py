"""Logs whose damaged lines are noticed and set aside."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from bertkit.storage.json_log import format_record, open_log, parse_record, read_log, rewrite_log, truncate_log

RECORDS = [{"kind": "train", "step": step, "loss": 0.1 * step, "skipped": False} for step in range(1, 6)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "metrics.jsonl"
    with open_log(path) as file:
        file.writelines(map(format_record, RECORDS))
    return path


def test_records_are_read_as_they_were_written(log: Path) -> None:
    assert read_log(log) == (RECORDS, [])


def test_numbers_that_are_not_finite_are_read_again() -> None:
    record = parse_record(format_record({"a": math.nan, "b": -math.inf, "c": "nan"}).strip())
    assert record is not None
    assert math.isnan(record["a"])
    assert (record["b"], record["c"]) == (-math.inf, "nan")


def test_every_flipped_bit_costs_its_line_or_two_and_is_noticed(log: Path) -> None:
    whole = log.read_bytes()
    for position in range(len(whole) * 8):
        changed = bytearray(whole)
        changed[position // 8] ^= 1 << position % 8
        log.write_bytes(changed)
        records, damaged = read_log(log)
        if records == RECORDS:
            assert position // 8 == whole.index(b"0.30000000000000004") + 18, "0.30000000000000005 is the same number"
            continue
        assert all(record in RECORDS for record in records)
        assert len(RECORDS) - 2 <= len(records) < len(RECORDS)
        assert damaged or position >= 8 * (len(whole) - 1), "only the last newline makes the last line incomplete"


def test_an_incomplete_last_line_is_dropped(log: Path) -> None:
    log.write_bytes(log.read_bytes()[:-9])
    assert read_log(log) == (RECORDS[:-1], [])
    assert rewrite_log(log, lambda record: True) == 0
    assert not log.with_name("metrics.jsonl.damaged").exists()
    assert log.read_text() == "".join(map(format_record, RECORDS[:-1]))


def test_damaged_lines_are_set_aside(log: Path) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([lines[0], b"\xff\xfe\n", b"[1]\n", b"{}\n", *lines[1:]]))
    assert rewrite_log(log, lambda record: record["step"] != 5) == 3
    assert read_log(log) == (RECORDS[:-1], [])
    assert log.with_name("metrics.jsonl.damaged").read_bytes() == b"\xff\xfe\n[1]\n{}\n"


@pytest.mark.parametrize("target", ["/dev/full", "other"])
def test_a_link_is_not_opened(tmp_path: Path, target: str) -> None:
    (tmp_path / "other").touch()
    (tmp_path / "metrics.jsonl").symlink_to(tmp_path / target)
    with pytest.raises(OSError, match="not a plain file"):
        open_log(tmp_path / "metrics.jsonl")


def test_truncation_keeps_the_records_before_the_damage(tmp_path: Path) -> None:
    path = tmp_path / "log"
    lines = [format_record({"step": step}) for step in range(5)]
    path.write_text("".join(lines) + lines[0][:-5])
    assert truncate_log(path) == 0
    assert path.read_text() == "".join(lines)
    path.write_text("".join([*lines[:2], "x" + lines[2], *lines[3:]]))
    assert truncate_log(path) == 3
    assert path.read_text() == "".join(lines[:2])
    assert (tmp_path / "log.damaged").read_text() == "".join(["x" + lines[2], *lines[3:]])
    path.unlink()
    path.symlink_to("/dev/null")
    with pytest.raises(OSError, match="plain file"):
        truncate_log(path)
