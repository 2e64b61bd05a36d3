"""Corpora under a limit on the address space: whatever the size of a file or of a line, it is read in parts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bertkit.text.wordpiece import train

PROGRAM = """
import resource, sys
from pathlib import Path

if __name__ == "__main__":
    from bertkit.data.inspection import inspect_files
    from bertkit.data.prepare import prepare
    from bertkit.text.wordpiece import WordPiece

    verb, megabytes, file, tokenizer, output = sys.argv[1:]
    tokenizer = WordPiece.load(Path(tokenizer))
    here = Path("/proc/self/statm")
    limit = int(here.read_text().split()[0]) * resource.getpagesize() + int(megabytes) * 1_000_000
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    if verb == "whole":
        tokenizer.encode(Path(file).read_text())
    elif verb == "check":
        (report,) = inspect_files([Path(file)], against=[Path(file).parent / "dev.txt"], near_duplicates=True).files
        assert not report.problem, report.problem
    else:
        prepare([Path(file)], tokenizer=tokenizer, output=Path(output), workers=1)
"""
WORDS = "some words "
PAGE = f"<page><ns>0</ns><revision><text>{WORDS * 900}</text></revision></page>"


def run(tmp_path: Path, verb: str, name: str, content: str, megabytes: int) -> subprocess.CompletedProcess[str]:
    """Run one verb with this many megabytes more than it has after its imports."""
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "dev.txt").write_text("thirteen words that are not in any of the texts of this long file")
    (tmp_path / name).write_text(content)
    train([WORDS], vocab_size=40).save(tmp_path / "tok")
    paths = [tmp_path / each for each in (name, "tok", "data")]
    # A thread reserves address space that it does not use.
    environment = {"RAYON_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    return subprocess.run(
        [sys.executable, str(tmp_path / "program.py"), verb, str(megabytes), *map(str, paths)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize(
    ("verb", "name", "content"),
    [
        ("check", "spaces.txt", WORDS * 400_000),
        ("check", "none.txt", "x" * 4_400_000),
        ("check", "a.xml", f"<mediawiki>{PAGE * 440}</mediawiki>"),
        ("prepare", "spaces.txt", WORDS * 400_000),
    ],
    ids=["a line", "a line without spaces", "a dump of MediaWiki", "a line prepared"],
)
def test_four_megabytes_need_little_memory(tmp_path: Path, verb: str, name: str, content: str) -> None:
    pytest.importorskip("datasketch")
    pytest.importorskip("mwparserfromhell")
    ran = run(tmp_path, verb, name, content, 450)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.faults
@pytest.mark.parametrize("verb", ["check", "prepare"])
@pytest.mark.parametrize("content", ["x", "é"])
def test_a_line_of_100_megabytes_without_a_space_needs_no_more(tmp_path: Path, verb: str, content: str) -> None:
    pytest.importorskip("datasketch")
    ran = run(tmp_path, verb, "a.txt", content * (100_000_000 // len(content.encode())), 450)
    assert ran.returncode == 0, ran.stderr


def test_the_limit_is_too_low_for_reading_the_file_at_once(tmp_path: Path) -> None:
    """Otherwise the test above could not fail."""
    assert run(tmp_path, "whole", "a.txt", WORDS * 400_000, 450).returncode != 0
