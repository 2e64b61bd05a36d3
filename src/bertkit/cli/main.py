"""The front door of the command: answers ``--help`` and ``--version`` with the standard library alone.

Everything else goes to ``bertkit.cli.app``. Whatever happens there ends as one line on stderr and one of these exit
codes: 0 done, 1 the job failed, 2 wrong usage, 3 bad data, 130 interrupted and resumable, 143 after SIGTERM.
"""

from __future__ import annotations

import io
import signal
import sys
from types import FrameType

from bertkit._version import __version__

HELP = """\
bertkit: BERT as real software. Raw text to a pre-trained, fine-tuned and usable model.

usage: bertkit VERB ARGUMENTS [OPTIONS]       bertkit VERB --help tells the rest

  start
    quickstart        raw text to a fine-tuned model with no input at all, in ten minutes
    doctor            device, precision, threads, memory, and what is installed

  from text to a model
    corpus check      encodings, documents, duplicates and lengths of text files
    tokenizer train   learn a vocabulary
    tokenizer show    how a text is cut: pieces, ids, offsets
    prepare           text files to a folder of tokens that training reads from
    pretrain          train an encoder on prepared text; --resume goes on with one

  from a model to answers
    fill              guess the words behind [MASK]
    finetune          train for a task (--list shows them) or on your own table
    tune              fine-tune at every point of a grid, keep the best
    evaluate          the official scores of a fine-tuned model, and a report
    compare           whether one of two models is better by more than chance
    predict           answers for every row of a file
    glue table        the scores of runs on GLUE's tasks side by side, with the paper's average
    glue submit       their test predictions as the files that GLUE's server marks
    squad score       a file of predictions as SQuAD's official programs score it

  the paper
    reproduce         a table of BERT's paper, or all: every system on one corpus, by one loop

  records
    track             the metrics of a run for TensorBoard, while it goes on if wanted
    config show       the settings of a run, and where each came from

options of every verb: --help, --debug (show where an error arose), --quiet, --progress auto|plain|json|quiet
results go to stdout, everything else to stderr; --json makes results readable for machines
"""


def main() -> int:
    """Run the command that ``sys.argv`` spells, and return its exit code."""
    words = sys.argv[1:]
    if words in ([], ["--help"], ["-h"], ["help"]):
        print(HELP, end="")  # noqa: T201 - the answer
        return 0
    if words in (["--version"], ["-V"]):
        print(f"bertkit {__version__}")  # noqa: T201 - the answer
        return 0
    signal.signal(signal.SIGTERM, _terminate)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a file name or a piece may be no text in this terminal
    try:
        from bertkit.cli.app import run

        return run(words)
    except KeyboardInterrupt:  # while the libraries were loaded
        return 130


def _terminate(number: int, frame: FrameType | None) -> None:
    """Leave through every ``finally``, so that nothing half-written stays behind."""
    raise SystemExit(128 + number)
