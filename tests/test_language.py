"""Words of an earlier private vocabulary that may not come back; the standard terms are in CONTRIBUTING.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BANNED = {
    r"shel(?:f|ves)": "plug-in package",
    r"rivals?": "baseline, or system",
    r"contenders?": "system",
    r"workshops?": "plan",
    r"agenda": "schedule",
    r"bricks?": "layer, or module",
    r"anew": "again",
    r"mend(?:s|ed|ing)?": "fix",
    r"nobody reads": "is ignored",
    r"asked words": "pre-training objective",
    r"pieces?": "token, subword or chunk",
}
OLD_CODE = re.compile(
    r"\b(Foreign|FOREIGN|asked_words|count_products|draw_untrained|keep_layers|TextPiece|TokenizedPiece|by_hand)\b"
)


def texts() -> Iterator[Path]:
    for folder in ("src", "tests", "docs", "benchmarks", "examples"):
        yield from sorted(path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md", ".ipynb"))
    yield from sorted(ROOT.glob("*.md"))


@pytest.mark.parametrize("pattern", [*BANNED, OLD_CODE.pattern])
def test_words_of_the_private_vocabulary_stay_out(pattern: str) -> None:
    word = re.compile(rf"(?<![\w.-])(?:{pattern})(?![\w])", 0 if pattern == OLD_CODE.pattern else re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]} -> {BANNED.get(pattern, 'the new name')}"
        for path in texts()
        if path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if word.search(line)
    ]
    assert not found, "\n".join(found[:40])
