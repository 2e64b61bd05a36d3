from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.inference.partial_records import keep_first, keep_intact, read_records
from bertkit.storage.json_log import format_record


def fill(records: Path, count: int) -> None:
    keep_intact(records, "abc")
    with records.open("a") as file:
        file.writelines(format_record({"row": row}) for row in range(count))


def test_intact_records_of_the_same_fingerprint_are_kept(tmp_path: Path) -> None:
    records = tmp_path / "records"
    records.touch()
    fill(records, 7)
    with records.open("a") as file:
        file.write('{"row": 7')
    assert keep_intact(records, "abc") == 7
    assert [record["row"] for record in read_records(records)] == list(range(7))
    keep_first(records, 3)
    assert keep_intact(records, "abc") == 3
    assert keep_intact(records, "other") == 0


def test_damage_is_named_when_records_are_read(tmp_path: Path) -> None:
    records = tmp_path / "records"
    records.touch()
    fill(records, 3)
    records.write_bytes(records.read_bytes().replace(b'"row": 1', b'"row": 9'))
    with pytest.raises(BertkitError, match=r"records is damaged\. Repeat the command"):
        list(read_records(records))
