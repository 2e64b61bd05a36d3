"""Every line `next: ...` that a command prints is a command that works as it is printed."""

from __future__ import annotations

import csv
import inspect
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.workspace import WORDS, run

from bertkit.cli.app import VERB_FUNCTIONS
from bertkit.report.progress import Progress

pytestmark = pytest.mark.usefixtures("without_shape_checks")

SHORTER = {"--minutes": "0.002", "--vocab-size": "99"}
"""What is changed in a printed command, so that it takes seconds."""

CHAINS: dict[str, str] = {
    "bert": "corpus check a.txt",
    "roberta": "tokenizer train a.txt --kind byte-bpe --vocab-size 299 -o TOK",
    "gpt": "tokenizer train a.txt --kind bpe --vocab-size 99 -o TOK",
    "elmo": "tokenizer train a.txt --kind words --vocab-size 99 -o TOK",
    "tune": "tune YOUR.csv --model WORKSPACE/run -o SWEEP --grid epochs=1",
    "track": "track WORKSPACE/run",
    "import": "import WORKSPACE/run -o IMPORTED",
    "embed": "embed WORKSPACE/run YOUR.csv -o VECTORS.npy",
    "transformers": "export WORKSPACE/run --to huggingface -o EXPORTED",
    "sentence-transformers": "export WORKSPACE/run --to sentence-transformers -o EXPORTED",
}
"""The commands that begin a chain; what is run after them is printed by the command before."""

FINAL = {"fill", "search", "serve"}
"""Verbs after which no command is suggested."""

SERVERS = {"serve", "tensorboard"}
"""They run until they are stopped, so only the folder that they are given is checked."""


def suggested(text: str) -> list[str] | None:
    """The command in the last line of what was written to stderr."""
    last = text.splitlines()[-1] if text else ""
    return shlex.split(last.removeprefix("next: ")) if last.startswith("next: ") else None


def shorten(words: list[str]) -> list[str]:
    return [SHORTER.get(before, word) for before, word in zip(["", *words], words, strict=False)]


@pytest.fixture
def folder(tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the files that a suggestion names: a text, labelled rows and new rows."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text((workspace / "a.txt").read_text() * 3)
    for name, header in (("YOUR.csv", ("text", "label")), ("NEW.csv", ("text",))):
        with (tmp_path / name).open("w", newline="") as file:
            rows = [(f"{word} {number}", ("bad", "good")[number % 2]) for number in range(3) for word in WORDS]
            csv.writer(file).writerows([header, *(row[: len(header)] for row in rows)])
    return tmp_path


@pytest.mark.parametrize("chain", CHAINS)
def test_every_suggested_command_works(
    chain: str, folder: Path, workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(workspace / "run", folder / "WORKSPACE" / "run")
    words = CHAINS[chain].split()
    while words[0] not in FINAL:
        capsys.readouterr()
        run(*words)
        command = suggested(capsys.readouterr().err)
        assert command is not None, f"nothing is suggested after {words}"
        program, *words = shorten(command)
        if program == "python":
            pytest.importorskip(words[-1].partition(";")[0].removeprefix("import "))
            subprocess.run([sys.executable, *words], check=True)
            return
        if {program, words[0]} & SERVERS:
            assert Path(words[-1]).is_dir()
            return
    run(*words)


def test_every_verb_that_suggests_a_command_is_in_a_chain() -> None:
    """A chain begins with one of these, or is known to reach it; a new one needs a chain."""
    suggesting = {each.__name__ for each in VERB_FUNCTIONS.values() if ".suggest(" in inspect.getsource(each)}
    assert suggesting == {
        *(
            "corpus_check",
            "tokenizer_train",
            "prepare",
            "pretrain",
            "finetune",
            "evaluate",
            "tune",
            "track",
            "import_",
            "export",
            "predict",
            "embed",
        )
    }


def test_a_suggestion_is_made_by_one_function_only() -> None:
    """Lines `next:` that are printed by other means would not be run here."""
    sources = Path(inspect.getfile(Progress)).parents[1].rglob("*.py")
    found = [path.name for path in sources if "next: {" in path.read_text() or "next: bertkit" in path.read_text()]
    assert found == ["verbosity.py"]
