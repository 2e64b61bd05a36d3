"""The verbs that apply a model: fill and predict."""

from __future__ import annotations

import bertkit
from bertkit.cli.output import show_json, show_lines, show_table
from bertkit.cli.verbosity import Verbosity
from bertkit.errors import count_of
from bertkit.options.inference import FillOptions, PredictOptions


def fill(options: FillOptions, *, json: bool) -> None:
    """Show the most probable words for each mask."""
    masks = bertkit.fill(**vars(options))
    if json:
        show_json(masks)
        return
    for number, fillings in enumerate(masks, start=1):
        if len(masks) > 1:
            show_lines([f"mask {number}"])
        show_table(("guess", "probability"), [(each.word, each.probability) for each in fillings])


def predict(options: PredictOptions, *, verbosity: Verbosity) -> None:
    """Predict every row of a file."""
    count = bertkit.predict(**vars(options))
    streamed = str(options.output) == "-"
    verbosity.say(f"{count_of(count, 'prediction')}{'' if streamed else f' in {options.output}'}")
    if not streamed:
        verbosity.suggest("bertkit", "serve", options.run)
