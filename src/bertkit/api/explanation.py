"""The verbs that look into a model: attention and explain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bertkit.api.verb import verb
from bertkit.errors import usage_error
from bertkit.inference.attention_maps import AttentionMaps, read_attention
from bertkit.inference.pipeline import Pipeline, load
from bertkit.inference.saliency import Saliency
from bertkit.inference.saliency import explain as explain_prediction
from bertkit.options.explanation import AttentionOptions, ExplainOptions
from bertkit.options.inputs import STREAM
from bertkit.report.card import base_name
from bertkit.report.explanation_pages import describe_truncation, render_attention, render_saliency
from bertkit.storage.atomic import write_text
from bertkit.storage.outputs import check_output, locked_output

_MOST_TOKENS = 128
"""A page has a line for each pair of tokens of each head: 128 tokens are 16,384 lines."""


@contextmanager
def _open_page(options: AttentionOptions | ExplainOptions) -> Iterator[tuple[Pipeline, Callable[[str], None]]]:
    """The model, and what writes the page; a usage error for a place that it cannot have."""
    output = Path(options.output)
    if output == STREAM:
        raise usage_error("-o - is standard output, and a page is a file: name one, such as -o page.html.")
    check_output(output, overwrite=options.overwrite)
    with locked_output(output):
        check_output(output, overwrite=options.overwrite)  # another process may have written it meanwhile
        yield load(options.model), partial(write_text, output)


@verb(AttentionOptions)
def attention(options: AttentionOptions) -> AttentionMaps:
    """``.tokens``, and the ``.weights`` (layers, heads, tokens, tokens); ``.num_truncated`` tokens are not read."""
    with _open_page(options) as (model, write):
        maps = read_attention(model, options.text, options.pair, most_tokens=_MOST_TOKENS)
        notes = describe_truncation(maps.num_truncated)
        write(render_attention(maps.tokens, maps.weights, model=base_name(model.folder), notes=notes))
    return maps


@verb(ExplainOptions)
def explain(options: ExplainOptions) -> Saliency:
    """``.prediction``, ``.tokens`` and their ``.contributions`` to it; ``.num_truncated`` tokens are not read."""
    with _open_page(options) as (model, write):
        found = explain_prediction(model, options.text, options.pair)
        sentence = (
            f"Contributions to the score {found.score:.3f}, by integrated gradients. They sum to "
            f"{found.contributions.sum():.3f}; the score of the text is {found.difference:.3f} above that of padding."
        )
        name = base_name(model.folder)
        notes = [sentence, *describe_truncation(found.num_truncated)]
        write(render_saliency(found.tokens, found.contributions, model=name, prediction=found.prediction, notes=notes))
    return found
