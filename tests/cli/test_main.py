"""The command as a shell sees it: exit codes, one-line errors, and what must not be imported."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bertkit._version import __version__
from bertkit.cli import app, main
from bertkit.cli import errors as endings
from bertkit.errors import data_error


def bertkit(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "import sys; from bertkit.cli.main import main; sys.exit(main())", *words]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",)])
def test_help_names_every_verb(words: tuple[str, ...]) -> None:
    answer = bertkit(*words)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, main.HELP, "")


def test_help_and_the_app_know_the_same_verbs() -> None:
    said = {line[4:22].strip() for line in main.HELP.splitlines() if line.startswith("    ")}
    known = set()
    for name in app.app:
        verbs = [verb for verb in app.app[name] if not verb.startswith("-")]
        known |= {f"{name} {verb}" for verb in verbs} or {name}
    assert said == {name for name in known if not name.startswith("-")}


@pytest.mark.parametrize("word", ["--version", "-V"])
def test_version(word: str) -> None:
    assert bertkit(word).stdout == f"bertkit {__version__}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("pretran", 'unknown command "pretran". Did you mean "pretrain"?'),
        ("corpus chek", 'unknown command "chek". Did you mean "check"?'),
        ("quickstart --minute 3", "unknown option: --minute. Did you mean --minutes?"),
        ("quickstart --minutes soon", 'invalid value for --minutes: unable to convert "soon" into float.'),
        ("quickstart now", 'unexpected argument "now".'),
        ("prepare a.txt -o data", 'command "prepare" parameter --tokenizer requires an argument.'),
    ],
)
def test_wrong_usage_is_one_line(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(words.split()) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"error: {message}")
    assert printed.err.count("\n") == 1


def test_wrong_usage_does_not_wait_for_torch() -> None:
    script = (
        "import sys; from bertkit.cli.main import main; code = main();"
        "sys.exit(code if not {'torch', 'numpy', 'transformers'} & set(sys.modules) else 99)"
    )
    for words in (["pretran"], ["pretrain", "--help"], ["finetune", "--sedes", "3"]):
        ended = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
        assert ended.returncode in (0, 2), (words, ended.stderr)


def test_names_cannot_write_to_the_terminal() -> None:
    answer = bertkit("fill", "\x1b[2Jrun\udcff\né", "[MASK]", PYTHONIOENCODING="ascii")
    assert answer.returncode == 2
    assert answer.stderr.startswith("error: no model at \\x1b[2Jrun\\udcff ")
    assert answer.stderr[:-1].isprintable()
    assert answer.stderr.isascii()


class OutOfMemoryError(RuntimeError):
    """As PyTorch names it."""


class Stopped(Exception):  # noqa: N818 - as Interrupted, it is not an error
    exit_code = 143


@pytest.mark.parametrize(
    ("error", "line", "exit_code"),
    [
        (data_error("shard 3 is torn."), "error: shard 3 is torn.", 3),
        (KeyboardInterrupt(), "interrupted", 130),
        (Stopped("saved"), "saved", 143),
        (SystemExit(143), "", 143),
        (MemoryError(), "error: out of memory. Give --set micro_batch_size", 1),
        (MemoryError("7 GiB"), "error: out of memory: 7 GiB. Give --set micro_batch_size", 1),
        (OutOfMemoryError("tried 7 GiB."), "error: tried 7 GiB. Give --set micro_batch_size", 1),
        (OSError(28, "No space left on device", "a/b"), "error: a/b: No space left on device.", 1),
        (KeyError("x"), "error: KeyError: 'x' (a mistake in bertkit?", 1),
    ],
)
def test_every_ending_has_its_line_and_code(error: BaseException, line: str, exit_code: int) -> None:
    said, code = endings.explain(error)
    assert said.startswith(line)
    assert code == exit_code


def test_debug_shows_where(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(words: list[str]) -> None:
        raise data_error("torn.")

    monkeypatch.setattr(app, "_run", fail)
    assert app.run(["doctor", "--debug"]) == 3
    assert "Traceback" in capsys.readouterr().err
    assert app.run(["doctor"]) == 3
    assert capsys.readouterr().err == "error: torn.\n"
