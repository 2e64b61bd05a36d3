"""A stdout that takes nothing more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def run(*words: str, redirect: str) -> subprocess.CompletedProcess[str]:
    line = f'"{sys.executable}" -c "import sys; from bertkit.cli.main import main; sys.exit(main())" {" ".join(words)}'
    return subprocess.run(f"{line} {redirect}", shell=True, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("word", ["--help", "--version", "doctor"])
@pytest.mark.parametrize(("redirect", "reason"), [("> /dev/full", "No space left on device"), (">&-", "it is closed")])
def test_a_stdout_that_cannot_be_written_to_is_one_line(word: str, redirect: str, reason: str) -> None:
    ended = run(word, redirect=redirect)
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: ")
    assert ended.stderr.count("\n") == 1
    assert reason in ended.stderr


def test_a_closed_stderr_does_not_matter() -> None:
    ended = run("doctor", redirect="2>&-")
    assert (ended.returncode, ended.stdout.startswith("bertkit ")) == (0, True)


def test_a_job_without_stderr_is_done(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the river ran\n" * 40)
    ended = run(
        "tokenizer", "train", f"{tmp_path / 'a.txt'}", "--vocab-size 40", "-o", f"{tmp_path / 'tok'}", redirect="2>&-"
    )
    assert ended.returncode == 0
    assert (tmp_path / "tok" / "tokenizer.json").is_file()


@pytest.mark.parametrize("word", ["--help", "doctor"])
def test_a_reader_that_has_ended_is_no_error(word: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        command = [sys.executable, "-m", "bertkit", word]
        ended = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (141, "")


def test_a_working_folder_that_is_gone_is_one_line(tmp_path: os.PathLike[str]) -> None:
    gone = f'cd "{tmp_path}" && mkdir gone && cd gone && rmdir "{tmp_path}/gone"'
    line = f'"{sys.executable}" -c "import sys; from bertkit.cli.main import main; sys.exit(main())" doctor'
    ended = subprocess.run(f"{gone} && {line}", shell=True, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr == "error: the working folder no longer exists. Change to another one.\n"
