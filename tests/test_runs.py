"""Run folders: held by one, written whole, read back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.runs import RunFolder, read_metrics, read_run


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    code = (
        f"from pathlib import Path\nfrom bertkit.runs import RunFolder\nwith RunFolder(Path({str(tmp_path)!r})): pass"
    )
    with RunFolder(tmp_path):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "is in use by process" in done.stderr
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_the_record_grows_and_a_second_run_is_refused(tmp_path: Path) -> None:
    with RunFolder(tmp_path) as folder:
        folder.begin({"seed": 7}, kind="pretrain")
        folder.note(ended="done", seconds=13)
    record = read_run(tmp_path)
    assert (record["run"], record["kind"], record["ended"]) == ({"seed": 7}, "pretrain", "done")
    assert {"bertkit", "torch", "python"} <= set(record["environment"])
    with RunFolder(tmp_path) as folder, pytest.raises(BertkitError, match="holds a run already"):
        folder.begin({}, kind="pretrain")


def test_a_resume_forgets_what_it_does_again(tmp_path: Path) -> None:
    with RunFolder(tmp_path) as folder:
        for step in range(1, 8):
            folder.log({"kind": "train", "step": step})
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "train", "st')
    assert len(read_metrics(tmp_path / "metrics.jsonl")) == 7
    with RunFolder(tmp_path) as folder:
        folder.forget(lambda record: record["step"] > 5)
        folder.log({"kind": "train", "step": 6, "again": True})
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1, 2, 3, 4, 5, 6]


def test_leftovers_of_a_crash_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".tmp-99-run.json").write_text("torso")
    with RunFolder(tmp_path):
        pass
    assert not list(tmp_path.glob(".tmp-*"))


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BertkitError, match="cannot write to"), RunFolder(tmp_path / "file" / "run"):
        pass


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match="is not a run folder"):
        read_run(tmp_path)
