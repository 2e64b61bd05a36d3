"""What every job can be told about talking while it runs."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from bertkit.report.progress import Mode, Progress


@dataclass(frozen=True, kw_only=True)
class Verbosity:
    """What a job says on stderr."""

    progress: Mode = "auto"
    """A bar on a terminal and plain lines elsewhere (auto), plain lines, JSON lines, or nothing."""
    quiet: bool = False
    """The same as --progress quiet."""

    @property
    def mode(self) -> Mode:
        """What the two options come to."""
        return "quiet" if self.quiet else self.progress

    def say(self, text: str) -> None:
        """One line."""
        Progress(self.mode).say(text)

    def next(self, *words: object) -> None:
        """The last line of a job: what to type next."""
        self.say(f"next: {shlex.join(map(str, words))}")
