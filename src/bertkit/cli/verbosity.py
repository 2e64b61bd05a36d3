"""The options of the command line about messages on stderr."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from cyclopts import Group, Parameter

from bertkit.lookup import spell_trust
from bertkit.options.help import GROUPS, OUTPUT
from bertkit.options.job import ProgressMode
from bertkit.report.progress import Progress


@Parameter(name="*", group=Group(OUTPUT, sort_key=GROUPS.index(OUTPUT)))  # options of the verb itself, without a prefix
@dataclass(frozen=True, kw_only=True)
class Verbosity:
    """What a command shows on stderr."""

    progress: ProgressMode = "auto"
    """A bar on a terminal and plain lines elsewhere (auto), plain lines, JSON lines, or nothing (quiet)."""
    quiet: bool = False
    """Show nothing on stderr but errors, as --progress quiet does."""

    @property
    def mode(self) -> ProgressMode:
        """The progress mode that follows from both options."""
        return "quiet" if self.quiet else self.progress

    def say(self, text: str) -> None:
        """Show one line."""
        Progress(self.mode).say(text)

    def suggest(self, *words: object) -> None:
        """Show the last line of a command: what to type next."""
        trust = spell_trust() if words[0] == "bertkit" else ""
        self.say(f"next: {trust}{shlex.join(map(str, words))}")
