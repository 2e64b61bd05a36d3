"""The verbs that use what was made: fill, evaluate, predict, track, config show, doctor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bertkit.cli.output import show_json, show_lines, show_parts, show_table
from bertkit.cli.verbosity import Verbosity


def fill(model: Path, text: str, /, *, top_k: int = 5, json: bool = False) -> None:
    """Guess the words behind [MASK]: bertkit fill MODEL "Paris is the [MASK] of France."

    Parameters
    ----------
    model:
        Run folder or Hugging Face folder of a BERT or RoBERTa with its masked-word head.
    text:
        Text with at least one [MASK], which is <mask> for RoBERTa.
    top_k:
        Guesses for each of them.
    json:
        Show the result as JSON.
    """
    from bertkit import api

    blanks = api.fill(model, text, top_k=top_k)
    if json:
        show_json(blanks)
        return
    for blank in blanks:
        show_table(("guess", "probability"), [(guess.word, guess.probability) for guess in blank])


def evaluate(
    run: Path,
    /,
    *,
    data: Path | None = None,
    split: str = "dev",
    on: str | None = None,
    output: Path | None = None,
    ensemble: Sequence[Path] = (),
    json: bool = False,
    talk: Verbosity | None = None,
) -> None:
    """The official scores of a fine-tuned model with their intervals, and a report as a page.

    Parameters
    ----------
    run:
        Run folder of a fine-tuning.
    data:
        Folder with the task's files, or one file with labels. [default: the files it was trained with]
    split:
        Which of the task's files.
    on:
        Another task that wants the same answers, such as glue:ax for a model of glue:mnli.
    output:
        Folder for report.html and report.json. [default: RUN/evaluation-SPLIT]
    ensemble:
        Run folders that answer together with RUN: the mean of what their heads say.
    json:
        Show the result as JSON.
    """
    from bertkit import api

    talk = talk or Verbosity()
    found = api.evaluate(run, data=data, split=split, on=on, output=output, ensemble=ensemble, progress=talk.mode)
    if json:
        show_json(found.record())
    else:
        rows = [(name, score.value, score.low, score.high) for name, score in found.scores.items()]
        show_table(("score", "value", "from", "to"), rows)
        show_lines([f"{found.examples:,} examples; 95 % intervals from {found.resamples:,} resamples"])
        show_parts(found.parts)
    talk.next("bertkit", "predict", run, "INPUT", "-o", "OUTPUT")


def compare(
    first: Path,
    second: Path,
    data: Path | None = None,
    /,
    *,
    split: str = "dev",
    json: bool = False,
    talk: Verbosity | None = None,
) -> None:
    """Whether one of two fine-tuned models is better than the other, by more than chance.

    Parameters
    ----------
    first:
        Run folder of a fine-tuning.
    second:
        Run folder of another one for the same task.
    data:
        File with labels, or folder with the task's files. [default: the files FIRST was trained with]
    split:
        Which of the task's files.
    json:
        Show the result as JSON.
    """
    from bertkit import api

    talk = talk or Verbosity()
    found = api.compare(first, second, data, split=split, progress=talk.mode)
    if json:
        show_json(found)
        return
    rows = [(name, each.first, each.second, each.difference, each.p) for name, each in found.scores.items()]
    show_table(("score", "first", "second", "second - first", "p"), rows)
    if found.mcnemar:
        only = f"only first {found.mcnemar.only_first:,}, only second {found.mcnemar.only_second:,}"
        show_lines([f"right: {only}; McNemar's exact p = {found.mcnemar.p:.4f}"])
    if found.disagreements:
        shown = [(each.id, each.gold, each.first, each.second, each.text[:60]) for each in found.disagreements]
        show_table(("id", "gold", "first", "second", "text"), shown)
    show_lines([found.sentence()])


def predict(
    run: Path, input: Path, /, *, output: Path, ensemble: Sequence[Path] = (), talk: Verbosity | None = None
) -> None:
    """Answers for every row of a file; the same command goes on after an interruption.

    Parameters
    ----------
    run:
        Run folder of a fine-tuning.
    input:
        .csv, .tsv, .jsonl, .parquet, .json for questions, or .txt with one text a line; - is stdin.
    output:
        .csv, .tsv, .jsonl, .parquet, or .json with an answer for each id; - is stdout.
    ensemble:
        Run folders that answer together with RUN: the mean of what their heads say.
    """
    from bertkit import api

    talk = talk or Verbosity()
    count = api.predict(run, input, output=output, ensemble=ensemble, progress=talk.mode)
    talk.say(f"{count:,} predictions in {output}")


def track(run: Path, /, *, follow: bool = False, talk: Verbosity | None = None) -> None:
    """The metrics of a run for TensorBoard, in RUN/tensorboard.

    Parameters
    ----------
    run:
        Run folder.
    follow:
        Go on until the run has ended.
    """
    from bertkit import api

    talk = talk or Verbosity()
    count = api.track(run, follow=follow)
    talk.say(f"{count:,} records in {run / 'tensorboard'}")
    talk.next("tensorboard", "--logdir", run / "tensorboard")


def config_show(run: Path, /, *, origin: bool = False, json: bool = False) -> None:
    """The settings of a run.

    Parameters
    ----------
    run:
        Run folder.
    origin:
        Show where each value came from: the default, a line of a file, or the command line.
    json:
        Show the result as JSON.
    """
    from bertkit import api

    settings = api.config_show(run)
    if json:
        show_json(settings)
    elif origin:
        show_table(("setting", "value", "origin"), [(each.path, repr(each.value), each.origin) for each in settings])
    else:
        show_table(("setting", "value"), [(each.path, repr(each.value)) for each in settings])


def doctor(*, json: bool = False) -> None:
    """Device, precision, threads, memory and what is installed.

    Parameters
    ----------
    json:
        Show the result as JSON.
    """
    from bertkit import api

    diagnosis = api.doctor()
    show_json(diagnosis) if json else show_lines(diagnosis.lines())
