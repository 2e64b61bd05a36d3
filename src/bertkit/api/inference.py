"""The verbs that apply a model: fill and predict."""

from __future__ import annotations

from pathlib import Path

from bertkit.api.paths import given_path
from bertkit.api.truncation import report_truncated
from bertkit.api.verb import verb
from bertkit.errors import usage_error
from bertkit.inference.fill import Filling
from bertkit.inference.pipeline import load
from bertkit.inference.prediction_files import predict_file
from bertkit.options.inference import FillOptions, PredictOptions
from bertkit.options.inputs import STREAM
from bertkit.report.progress import Progress
from bertkit.results import Results
from bertkit.user_tables.input_columns import choose_columns, with_encoding


@verb(FillOptions)
def fill(options: FillOptions) -> list[Results[Filling]]:
    """The ``top_k`` most probable words for each mask, from left to right."""
    return load(options.model, precision=options.precision).fill(options.text, options.top_k)


@verb(PredictOptions)
def predict(options: PredictOptions) -> int:
    """The number of rows that were predicted."""
    input = given_path(options.input)
    model = load(options.run, *options.ensemble, precision=options.precision)
    sentence = ""
    if input != STREAM:
        model.task = with_encoding(model.task, options.encoding)
        model.task, sentence = choose_columns(model.task, input, text=options.text, pair=options.pair, id=options.id)
    elif any((options.text, options.pair, options.id, options.encoding)):
        raise usage_error("stdin has lines of UTF-8 and no columns: leave out --text, --pair, --id and --encoding.")
    with Progress(options.progress) as bar:
        total, notes = (None, []) if input == STREAM else model.task.reader.inspect_input(input)
        for note in filter(None, [sentence, *notes]):
            bar.say(note)
        bar.start("predicting", total, "row")
        count = predict_file(model, input, Path(options.output), bar.advance, overwrite=options.overwrite)
        report_truncated(model, bar)
        return count
