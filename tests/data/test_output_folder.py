"""The output folder of a preparation. ``test_prepare.py`` tests the same through the whole preparation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertkit.data.output_folder import emptied_by_errors, lock_output, start_job
from bertkit.data.shards import JOB, MANIFEST, TOKENIZER
from bertkit.errors import BertkitError
from bertkit.storage.atomic import TEMPORARY_PREFIX
from bertkit.storage.checksums import read_record

WANTED = {"files": [["a.txt", "0"]], "heldout": 0.25}


def test_a_folder_is_made_with_its_parents(tmp_path: Path) -> None:
    with lock_output(tmp_path / "new" / "data"):
        assert (tmp_path / "new" / "data").is_dir()


def test_a_folder_can_be_held_only_once_at_a_time(tmp_path: Path) -> None:
    with lock_output(tmp_path / "data"):
        with (
            pytest.raises(BertkitError, match="is being written by another process") as caught,
            lock_output(tmp_path / "data"),
        ):
            pass
        assert caught.value.exit_code == 2
    with lock_output(tmp_path / "data"):
        pass


def test_temporary_files_are_removed_from_a_folder_of_its_own(tmp_path: Path) -> None:
    (tmp_path / JOB).write_text(json.dumps(WANTED))
    (tmp_path / f"{TEMPORARY_PREFIX}1-train-00000.safetensors").touch()
    with lock_output(tmp_path):
        assert [path.name for path in tmp_path.iterdir()] == [JOB]


def test_a_folder_with_other_files_is_refused_and_unchanged(tmp_path: Path) -> None:
    for name in ("thesis.doc", f"{TEMPORARY_PREFIX}mine"):
        (tmp_path / name).touch()
    with pytest.raises(BertkitError, match="is not empty and was not made by bertkit prepare"), lock_output(tmp_path):
        pass
    assert len(list(tmp_path.iterdir())) == 2


def test_a_new_job_is_recorded(tmp_path: Path) -> None:
    assert start_job(tmp_path, WANTED)
    assert read_record(tmp_path / JOB) == WANTED
    assert start_job(tmp_path, WANTED), "an unfinished job continues"


def test_a_job_without_a_finished_shard_is_replaced(tmp_path: Path) -> None:
    start_job(tmp_path, WANTED)
    assert start_job(tmp_path, {**WANTED, "heldout": 0.5})
    assert read_record(tmp_path / JOB)["heldout"] == 0.5


@pytest.mark.parametrize("finished", ["journal-00000.json", MANIFEST])
def test_another_job_with_a_finished_shard_is_refused(tmp_path: Path, finished: str) -> None:
    start_job(tmp_path, WANTED)
    (tmp_path / finished).touch()
    with pytest.raises(BertkitError, match="holds a corpus with other heldout"):
        start_job(tmp_path, {**WANTED, "heldout": 0.5})
    assert read_record(tmp_path / JOB) == WANTED


def test_a_damaged_result_is_made_again(tmp_path: Path) -> None:
    start_job(tmp_path, WANTED)
    (tmp_path / MANIFEST).write_text("{")
    assert start_job(tmp_path, WANTED)
    assert not (tmp_path / MANIFEST).exists()


@pytest.mark.parametrize("content", ["[]", '{"mine": 1}'])
def test_a_file_of_another_program_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / JOB).write_text(content)
    with pytest.raises(BertkitError, match=r"was not written by bertkit prepare|is not a JSON object"):
        start_job(tmp_path, WANTED)
    assert (tmp_path / JOB).read_text() == content


def test_an_error_before_the_first_shard_leaves_nothing(tmp_path: Path) -> None:
    output = tmp_path / "data"
    with pytest.raises(BertkitError, match="no text"), lock_output(output), emptied_by_errors(output):
        start_job(output, WANTED)
        (output / TOKENIZER).mkdir()
        (output / TOKENIZER / "tokenizer.json").touch()
        (output / "train-00000.safetensors").touch()  # the disk was full at the next one
        raise BertkitError("no text")
    assert not output.exists()
    output.mkdir()
    with pytest.raises(BertkitError, match="no text"), lock_output(output), emptied_by_errors(output):
        start_job(output, WANTED)
        raise BertkitError("no text")
    assert list(output.iterdir()) == [], "a folder of the user stays"


def test_an_interrupted_job_and_one_with_a_finished_shard_continue(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), lock_output(tmp_path), emptied_by_errors(tmp_path):
        start_job(tmp_path, WANTED)
        raise KeyboardInterrupt
    assert read_record(tmp_path / JOB) == WANTED
    with pytest.raises(BertkitError, match="died"), lock_output(tmp_path), emptied_by_errors(tmp_path):
        (tmp_path / "journal-00000.json").touch()
        raise BertkitError("a worker died")
    assert read_record(tmp_path / JOB) == WANTED


def test_shards_of_an_earlier_command_are_not_deleted(tmp_path: Path) -> None:
    start_job(tmp_path, WANTED)
    (tmp_path / "train-00003.safetensors").touch()
    with pytest.raises(BertkitError, match="full"), lock_output(tmp_path), emptied_by_errors(tmp_path):
        raise BertkitError("the disk is full")
    assert {path.name for path in tmp_path.iterdir()} == {JOB, "train-00003.safetensors"}
