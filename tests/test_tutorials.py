"""The blocks of the tutorials run in order, in one folder, with smaller numbers, and print what the page shows."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from tests.test_documentation import DOCS, bertkit_words, commands_of
from tests.workspace import WORDS, run

TUTORIALS = ("text", "table", "model")
SMALLER = {
    "--vocab-size 8000": "--vocab-size 300",
    "--minutes 10": "--steps 2 --batch-size 4 --seq-length 32",
    "--size mini": "--size 1/16/2",
    "--seeds 3": "--seeds 1 --epochs 1",
    "--progress plain": "--progress quiet",
}
"""Replacements with which a tutorial takes seconds."""


def write_quickstart_files(folder: Path) -> None:
    """The files of ``bertkit quickstart`` that the tutorials read: a corpus, and a table with labels."""
    generator = random.Random(7)
    (folder / "task").mkdir(parents=True)
    texts = [" ".join(generator.choices(WORDS, k=30)).capitalize() + "." for _ in range(40)]
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in texts)
    for name, rows in {"train.csv": texts, "dev.csv": texts[:10]}.items():
        lines = [f"{text},{('numpy', 'scipy')[number % 2]}\n" for number, text in enumerate(rows)]
        (folder / "task" / name).write_text("text,label\n" + "".join(lines), encoding="utf-8")


def blocks_of(page: Path) -> list[tuple[str, str]]:
    """The language and the content of every block of code."""
    return re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def first_words(text: str) -> list[str]:
    """The first word of every line that is not empty; the numbers after it differ between two runs."""
    return [line.split()[0] for line in text.splitlines() if line.strip()]


def test_every_block_of_the_tutorials_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for tutorial in TUTORIALS:
        page = tmp_path / f"{tutorial}.md"
        for language, content in blocks_of(DOCS / "tutorials" / page.name):
            if language == "python":
                exec(compile(content, str(page), "exec"), {})
                continue
            for long, small in SMALLER.items():
                content = content.replace(long, small)
            page.write_text(f"```{language}\n{content}```\n", encoding="utf-8")
            shown = dict(re.findall(r"^\$ (bertkit .*)\n(?!\$ )(.+)", content, re.MULTILINE))
            for line in commands_of(page):
                capsys.readouterr()
                for words in bertkit_words(line):
                    if words[0] == "quickstart":
                        write_quickstart_files(Path(words[words.index("-o") + 1]))
                    else:
                        run(*words)
                if line in shown:
                    assert first_words(shown[line])[0] in first_words(capsys.readouterr().out), line
    for made in (
        "data/manifest.json",
        "runs/mini/model/config.json",
        "answers.csv",
        "vectors.npy",
        "exported/config.json",
    ):
        assert (tmp_path / made).exists(), made
