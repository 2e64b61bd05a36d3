"""The speed of encoding questions as features on one core, and the time to score 6,000 predictions.

    python benchmarks/squad_features.py TOKENIZER [FILE...] [--repeats 5]

FILE is in SQuAD's format; the default is all files in $BERTKIT_DATA/squad. Questions are in memory: tokenization,
windows and labels are timed, reading the file is not. CPU time is measured, so that other work on the machine does not
matter. The targets are 5,000 questions per second and 1 s.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"

from bertkit.metrics.squad import normalize, score_all_v2
from bertkit.task_types import SpanExample
from bertkit.tasks.squad import v2
from bertkit.text.wordpiece import WordPiece


def time_features(questions: list[SpanExample], tokenizer: WordPiece) -> tuple[float, int]:
    """Seconds, and the number of features."""
    begin = time.process_time()
    count = sum(len(features) for _, features in v2.encode_all(questions, tokenizer))
    return time.process_time() - begin, count


def time_scoring(questions: list[SpanExample]) -> float:
    """Seconds for 6,000 predictions, each the first words of its context, with null odds."""
    scored = questions[:6000]
    gold = {str(index): example.texts for index, example in enumerate(scored)}
    given = {str(index): example.label or example.context[:30] for index, example in enumerate(scored)}
    odds = {str(index): float(index % 7) for index in range(len(scored))}
    normalize.cache_clear()
    begin = time.process_time()
    score_all_v2(gold, given, odds)
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    files = arguments.files or sorted((Path(os.environ["BERTKIT_DATA"]) / "squad").glob("*.json"))
    tokenizer = WordPiece.load(arguments.tokenizer)
    for file in files:
        questions = list(v2.reader.read(file))
        found = [time_features(questions, tokenizer) for _ in range(arguments.repeats)]
        seconds, features = min(found)
        tokens = sum(len(each) for _, own in v2.encode_all(questions, tokenizer) for each in own)
        scoring = min(time_scoring(questions) for _ in range(arguments.repeats))
        print(
            f"{file.name}: {len(questions) / seconds:,.0f} questions/s, {features / seconds:,.0f} features/s of "
            f"{tokens / features:.0f} tokens; {min(6000, len(questions)):,} predictions scored in {scoring:.2f} s"
        )


if __name__ == "__main__":
    main()
