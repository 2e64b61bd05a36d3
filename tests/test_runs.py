"""Run folders: held by one process, written completely, read again."""

from __future__ import annotations

import errno
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from bertkit.errors import BertkitError, DivergenceError
from bertkit.runs import (
    DONE,
    FORMAT,
    RunFolder,
    differing_settings,
    environment,
    find_named_folder,
    read_end,
    read_metrics,
    read_run,
)
from bertkit.storage.atomic import write_json
from bertkit.storage.checksums import write_checked


def test_a_second_process_is_refused_while_the_first_holds_the_folder(tmp_path: Path) -> None:
    code = (
        f"from pathlib import Path\nfrom bertkit.runs import RunFolder\nwith RunFolder(Path({str(tmp_path)!r})): pass"
    )
    with RunFolder(tmp_path):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "is in use by process" in done.stderr
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_facts_are_added_to_the_record_and_a_second_run_is_refused(tmp_path: Path) -> None:
    with RunFolder(tmp_path) as folder:
        folder.begin({"seed": 7}, kind="pretrain")
        folder.note(ended="done", seconds=13)
    record = read_run(tmp_path)
    assert (record["run"], record["kind"], record["ended"]) == ({"seed": 7}, "pretrain", "done")
    assert {"bertkit", "torch", "python"} <= set(record["environment"])
    with RunFolder(tmp_path) as folder, pytest.raises(BertkitError, match="holds a run already"):
        folder.begin({}, kind="pretrain")


def test_a_run_that_diverged_has_ended_and_one_that_was_interrupted_has_not(tmp_path: Path) -> None:
    errors = {"diverged": DivergenceError("the loss is NaN at step 7."), "interrupted": KeyboardInterrupt()}
    for name, error in errors.items():
        with pytest.raises(type(error)), RunFolder(tmp_path / name) as folder:
            folder.begin({}, kind="pretrain")
            raise error
    assert read_run(tmp_path / "diverged")["ended"] == "failed: the loss is NaN at step 7."
    assert read_run(tmp_path / "interrupted")["ended"] is None


def test_records_of_repeated_steps_and_a_torn_line_are_dropped(tmp_path: Path) -> None:
    with RunFolder(tmp_path) as folder:
        folder.begin({}, kind="pretrain")
        for step in range(1, 8):
            folder.log({"kind": "train", "step": step})
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "train", "st')
    assert len(read_metrics(tmp_path / "metrics.jsonl")) == 7
    with RunFolder(tmp_path) as folder:
        folder.delete_records(lambda record: record["step"] > 5)
        folder.log({"kind": "train", "step": 6, "again": True})
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1, 2, 3, 4, 5, 6]


def test_a_damaged_record_is_set_aside_and_the_records_after_it_are_kept(tmp_path: Path) -> None:
    with RunFolder(tmp_path) as folder:
        folder.begin({}, kind="pretrain")
        for step in range(1, 4):
            folder.log({"kind": "train", "step": step, "loss": math.nan})
    whole = folder.metrics.read_bytes()
    folder.metrics.write_bytes(whole.replace(b'"step": 2', b'"step": 7'))
    with RunFolder(tmp_path) as folder:
        assert folder.notices == [f"set aside in {folder.metrics}.damaged: 1 damaged line of {folder.metrics}"]
    assert [record["step"] for record in read_metrics(folder.metrics)] == [1, 3]
    assert b'"step": 7' in (tmp_path / "metrics.jsonl.damaged").read_bytes()


@pytest.mark.parametrize("name", ["run.lock", "metrics.jsonl"])
def test_a_link_in_the_folder_is_not_followed(tmp_path: Path, name: str) -> None:
    (tmp_path / "thesis").write_text("precious")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).symlink_to(tmp_path / "thesis")
    with pytest.raises(BertkitError, match=name), RunFolder(tmp_path / "run") as folder:
        folder.log({"kind": "train", "step": 1})
    assert (tmp_path / "thesis").read_text() == "precious"


def test_a_lock_file_that_did_not_fit_on_the_disk_does_not_block_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_one_byte(path: Path, text: str, encoding: str) -> int:
        path.write_bytes(text[:1].encode(encoding))
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_text", write_one_byte)
        with pytest.raises(BertkitError, match="no space left"), RunFolder(tmp_path):
            pass
    with RunFolder(tmp_path) as folder:
        assert not folder.notices


@pytest.mark.parametrize("name", ["model/model.safetensors", "results.json", "best/notes.txt", "config.json"])
def test_a_folder_with_results_of_others_is_left_as_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("precious")
    with pytest.raises(BertkitError, match=f"has {Path(name).parts[0]} and no run.json"), RunFolder(tmp_path):
        pass
    assert [each.name for each in tmp_path.iterdir()] == [Path(name).parts[0]]
    assert (tmp_path / name).read_text() == "precious"


def test_a_lock_file_of_another_program_is_not_emptied(tmp_path: Path) -> None:
    (tmp_path / "run.lock").write_text("precious")
    with pytest.raises(BertkitError, match=r"run\.lock was not written by bertkit"), RunFolder(tmp_path):
        pass
    assert (tmp_path / "run.lock").read_text() == "precious"


def test_an_error_leaves_no_folder_that_has_nothing_else(tmp_path: Path) -> None:
    def fail_in(path: Path, *, work: bool = False) -> None:
        with pytest.raises(BertkitError, match="refused"), RunFolder(path) as folder:
            if work:
                folder.begin({})
            raise BertkitError("refused")

    fail_in(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    fail_in(tmp_path / "begun", work=True)
    assert (tmp_path / "begun" / "run.json").exists()
    (tmp_path / "made").mkdir()
    fail_in(tmp_path / "made")
    assert (tmp_path / "made").exists()


def test_temporary_files_of_a_crash_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".bertkit-tmp-99-run.json").write_text("incomplete")
    with RunFolder(tmp_path):
        pass
    assert not list(tmp_path.glob(".bertkit-tmp-*"))


def test_the_error_names_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BertkitError, match="cannot write to"), RunFolder(tmp_path / "file" / "run"):
        pass


def test_the_error_names_a_folder_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match="is not a run folder"):
        read_run(tmp_path)


def test_a_run_folder_of_an_earlier_format_is_refused(tmp_path: Path) -> None:
    with RunFolder(tmp_path) as folder:
        folder.begin({}, kind="pretrain")
        record = read_run(tmp_path)
        assert record.pop("format") == FORMAT
        write_checked(folder.record, record)
        for read in (lambda: read_run(tmp_path), lambda: folder.note(ended="done")):
            with pytest.raises(BertkitError) as caught:
                read()
            assert str(caught.value) == (
                f"{tmp_path}/run.json has format 1; this version of bertkit reads format {FORMAT}. "
                "Start the run again in another -o folder."
            )


def test_a_process_can_wait_for_the_folder(tmp_path: Path) -> None:
    code = "import sys, time; from pathlib import Path; from bertkit.runs import RunFolder\n"
    code += "with RunFolder(Path(sys.argv[1])): print('held', flush=True); time.sleep(0.5)"
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with RunFolder(tmp_path, wait=True) as folder:
            assert not folder.notices
        assert holder.wait() == 0


def test_the_process_that_was_killed_is_named(tmp_path: Path) -> None:
    code = "import os, sys; from pathlib import Path; from bertkit.runs import RunFolder\n"
    code += "with RunFolder(Path(sys.argv[1])): os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    with RunFolder(tmp_path) as folder:
        (notice,) = folder.notices
        assert notice.startswith("process ")
        assert notice.endswith(f" held {tmp_path} until it was killed; this process takes over")


def test_a_process_that_does_not_write_leaves_no_trace(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "run", writes=False) as folder:
        folder.begin({}, kind="pretrain")
        folder.log({"step": 1})
    assert not (tmp_path / "run").exists()


def test_settings_that_differ_are_named_by_path() -> None:
    before = {"lr": 1e-3, "task": {"name": "a", "files": {"train": ["x"]}}, "gone": 1}
    now = {"lr": 1e-3, "task": {"name": "a", "files": {"train": ["y"]}, "pair": True}, "new": 2}
    assert differing_settings(before, now) == ["task.files.train", "task.pair", "gone", "new"]
    assert differing_settings(before, before) == []
    assert differing_settings({}, {"new": None}) == ["new"], "absent is not None"


def test_the_environment_names_versions_and_machine() -> None:
    assert {"bertkit", "python", "torch", "tokenizers", "numpy", "machine", "time"} == set(environment())


def test_a_run_has_ended_after_its_last_step(tmp_path: Path) -> None:
    assert not read_end(tmp_path).is_done
    write_json(tmp_path / "run.json", {"format": FORMAT, "kind": "pretrain", "run": {}, "ended": None})
    assert not read_end(tmp_path).is_done
    write_json(tmp_path / "run.json", {"format": FORMAT, "kind": "pretrain", "run": {}, "ended": DONE})
    assert read_end(tmp_path).is_done


def test_the_reason_of_a_failure_is_read_from_the_record(tmp_path: Path) -> None:
    assert not read_end(tmp_path).failure
    with pytest.raises(DivergenceError), RunFolder(tmp_path / "run") as folder:
        folder.begin({}, kind="pretrain")
        raise DivergenceError("the loss is NaN")
    assert read_end(tmp_path / "run").failure == "the loss is NaN"
    assert not read_end(tmp_path / "run").is_done


def test_every_notice_is_kept(tmp_path: Path) -> None:
    """After a power failure a folder may have both a holder that is gone and a damaged log."""
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / "run.lock").write_text("process 1 on host")
    (tmp_path / "metrics.jsonl").write_text("garbage\n")
    with RunFolder(tmp_path) as folder:
        killed, damaged = folder.notices
    assert "until it was killed" in killed
    assert damaged.startswith("set aside")


def test_a_model_has_the_name_of_its_run_or_its_own() -> None:
    assert find_named_folder(Path("runs/reviews/model")) == Path("runs/reviews")
    assert find_named_folder(Path("bert-base-uncased")) == Path("bert-base-uncased")
