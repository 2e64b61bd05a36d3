"""The command as a shell sees it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bertkit._version import __version__
from bertkit.cli import main
from bertkit.options.verbs import VERBS


def bertkit(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "import sys; from bertkit.cli.main import main; sys.exit(main())", *words]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",)])
def test_help_is_printed(words: tuple[str, ...]) -> None:
    ended = bertkit(*words)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, main.HELP, "")


def test_help_lists_every_verb_with_what_it_does() -> None:
    lines = [line for line in main.HELP.splitlines() if line.startswith("    ")]
    assert [line[4:22].strip() for line in lines] == list(VERBS)
    assert all(line[22:] and not line.endswith(".") and len(line) <= 140 for line in lines)


def test_output_for_a_file_is_utf8_in_any_locale(tmp_path: Path) -> None:
    """In the C locale Python's stdout is ASCII, and the escapes that a terminal gets are no JSON."""
    (tmp_path / "run.json").write_text('{"format": 3, "kind": "x", "run": {"a": "\u00e4\u5b66"}}', encoding="utf-8")
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "bertkit", "config", "show", str(tmp_path), "--json"]
    ended = subprocess.run(command, capture_output=True, env=environment, check=True)
    assert "\u00e4\u5b66" in ended.stdout.decode("utf-8")


@pytest.mark.parametrize(
    ("verb", "environment", "expected"),
    [
        ("doctor", {}, "1000"),
        ("serve", {}, "1000"),
        ("bench pretrain", {}, "None"),
        ("--debug bench pretrain", {}, "None"),
        ("doctor", {"GOMP_SPINCOUNT": "7"}, "7"),
        ("doctor", {"OMP_WAIT_POLICY": "active"}, "None"),
    ],
)
def test_waiting_threads_sleep_soon_unless_the_user_decides(
    verb: str, environment: dict[str, str], expected: str
) -> None:
    program = """
import os, sys
from bertkit.cli import app, main
def show(words):
    print(os.environ.get("GOMP_SPINCOUNT"))
app._run = show
sys.exit(main.main())
"""
    kept = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    command = [sys.executable, "-c", program, *verb.split()]
    ended = subprocess.run(command, capture_output=True, text=True, env={**kept, **environment}, check=True)
    assert ended.stdout == f"{expected}\n"


@pytest.mark.parametrize(("number", "shown"), [(signal.SIGINT, "interrupted\n"), (signal.SIGTERM, "")])
def test_a_signal_ends_the_command_whatever_a_library_makes_of_it(number: signal.Signals, shown: str) -> None:
    """PyTorch makes a ValueError of an interruption while it asks for the length of a sequence."""
    program = f"""
import os, sys, time
from bertkit.cli import app, main
def hide(words):
    try:
        os.kill(os.getpid(), {int(number)})
        time.sleep(9)
    except BaseException:
        raise ValueError("could not determine the shape") from None
app._run = hide
sys.exit(main.main())
"""
    command = [sys.executable, "-c", program, "doctor"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (128 + number, shown)


@pytest.mark.parametrize("word", ["--version", "-V"])
def test_version(word: str) -> None:
    assert bertkit(word).stdout == f"bertkit {__version__}\n"


def test_names_cannot_write_to_the_terminal() -> None:
    ended = bertkit("fill", "\x1b[2Jrun\udcff\né", "[MASK]", PYTHONIOENCODING="ascii")
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: \\x1b[2Jrun\\udcff ")
    assert ended.stderr[:-1].isprintable()
    assert ended.stderr.isascii()
