"""The manual page, as roff and as a reader sees it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bertkit.cli.reference import MANUAL, make_pages
from bertkit.options.command import spell_option
from bertkit.options.description import list_options
from bertkit.options.verbs import VERBS


def test_the_page_has_every_option_and_no_stray_command_of_roff() -> None:
    page = make_pages()[MANUAL]
    for verb, record in VERBS.items():
        (section,) = re.findall(rf'^\.SS "{verb}"$.*?(?=^\.S[SH] )', page, re.MULTILINE | re.DOTALL)
        for option in list_options(record):
            spelled = option.name.upper() if option.positional else spell_option(option.name).replace("-", r"\-")
            assert f"\n.B {spelled}" in section, (verb, option.name)
    commands = {line.split()[0] for line in page.splitlines() if line.startswith((".", "'"))}
    assert commands == {".TH", ".SH", ".SS", ".PP", ".TP", ".B"}


def test_the_page_is_set_without_a_warning(tmp_path: Path) -> None:
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not installed")
    (tmp_path / MANUAL).write_text(make_pages()[MANUAL], encoding="utf-8")
    command = [groff, "-man", "-Tascii", "-P-bcou", "-ww", str(tmp_path / MANUAL)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "--progress auto|plain|json|quiet" in done.stdout
    assert "Show nothing on stderr but errors." in done.stdout
    assert "\n       BERTKIT_DATA\n" in done.stdout
