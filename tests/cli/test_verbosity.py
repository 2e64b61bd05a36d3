"""What a command shows on stderr."""

from __future__ import annotations

import pytest

from bertkit.cli.verbosity import Verbosity


def test_quiet_wins_over_progress() -> None:
    assert Verbosity(progress="json", quiet=True).mode == "quiet"
    assert Verbosity(progress="json").mode == "json"


def test_the_next_command_is_quoted_for_a_shell(capsys: pytest.CaptureFixture[str]) -> None:
    Verbosity(progress="plain").suggest("bertkit", "fill", "my run", "The [MASK].")
    printed = capsys.readouterr()
    assert printed.err == "next: bertkit fill 'my run' 'The [MASK].'\n"
    assert printed.out == ""


def test_the_next_command_reads_what_was_trained_with_a_module_of_the_user(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BERTKIT_TRUST", "my_lab")
    Verbosity(progress="plain").suggest("bertkit", "fill", "run", "The [MASK].")
    assert capsys.readouterr().err == "next: BERTKIT_TRUST=my_lab bertkit fill run 'The [MASK].'\n"


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    Verbosity(quiet=True).say("hello")
    assert capsys.readouterr().err == ""
