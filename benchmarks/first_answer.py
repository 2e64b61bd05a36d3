"""The time to the first answer of a new process, beside transformers and the import of PyTorch alone.

    python benchmarks/first_answer.py MODEL [--rounds 5]

MODEL is a folder with a classifier that transformers loads too. The programs take turns; the figures are medians.
Modules are compiled to bytecode once, as an installation has them, whatever PYTHONDONTWRITEBYTECODE says.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

TEXT = "A film to see twice."

TRANSFORMERS = """
import torch, transformers
model = transformers.AutoModelForSequenceClassification.from_pretrained({model!r})
tokenizer = transformers.AutoTokenizer.from_pretrained({model!r})
with torch.inference_mode():
    print(model.eval()(**tokenizer({text!r}, return_tensors="pt")).logits.softmax(-1), flush=True)
"""


class Times(NamedTuple):
    """Seconds from the start of a process: to its first line, to its end, and those of its cores."""

    first: float
    end: float
    cpu: float


def list_programs(model: str, texts: Path) -> dict[str, list[str]]:
    """The commands by name; each writes its answer on stdout. ``texts`` is a file with one text."""
    python = [sys.executable, "-c"]
    return {
        "import torch alone": [*python, "import torch; print(torch.__version__, flush=True)"],
        "bertkit.load(MODEL).classify(text)": [
            *python,
            f"import bertkit; print(bertkit.load({model!r}).classify({TEXT!r}), flush=True)",
        ],
        "bertkit predict MODEL one.txt -o -": [
            *(sys.executable, "-m", "bertkit", "predict", model, str(texts), "-o", "-", "--quiet"),
        ],
        "transformers: model and tokenizer, one pass": [*python, TRANSFORMERS.format(model=model, text=TEXT)],
    }


def measure(command: list[str]) -> Times:
    """One run of a program, which must succeed."""
    before, begin = os.times(), time.perf_counter()
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    answer = process.stdout.readline()
    first = time.perf_counter() - begin
    _, errors = process.communicate()
    end, after = time.perf_counter() - begin, os.times()
    if process.returncode or not answer:
        sys.exit(f"error: {command[:3]} failed: {errors.decode()}")
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return Times(first, end, spent)


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder) / "one.txt"
        texts.write_text(TEXT + "\n")
        programs = list_programs(options.model, texts)
        for command in programs.values():  # files come into memory, and the fastest path of the machine is remembered
            measure(command)
        rounds = [{name: measure(command) for name, command in programs.items()} for _ in range(options.rounds)]
    print("| program | first answer, s | end of the process, s | CPU seconds |\n|---|---|---|---|")
    for name in programs:
        medians = [statistics.median(each[name][place] for each in rounds) for place in range(len(Times._fields))]
        print(f"| {name} | {' | '.join(f'{each:.2f}' for each in medians)} |")


if __name__ == "__main__":
    main()
