"""The verbs that look into a model: attention and explain."""

from __future__ import annotations

import bertkit
from bertkit.cli.output import show_json, show_lines
from bertkit.errors import count_of
from bertkit.options.explanation import AttentionOptions, ExplainOptions


def attention(options: AttentionOptions, *, json: bool) -> None:
    """Write the page, and say where it is."""
    from bertkit.report.explanation_pages import describe_truncation

    maps = bertkit.attention(**vars(options))
    if json:
        show_json(maps.to_dict())
        return
    layers, heads = maps.weights.shape[:2]
    shape = f"{count_of(layers, 'layer')} of {count_of(heads, 'head')} on {count_of(len(maps.tokens), 'token')}"
    show_lines([f"{options.output}: {shape}", *describe_truncation(maps.num_truncated)])


def explain(options: ExplainOptions, *, json: bool) -> None:
    """Write the page, and show the tokens that matter most."""
    from bertkit.report.explanation_pages import describe_truncation

    found = bertkit.explain(**vars(options))
    if json:
        show_json(found.to_dict())
        return
    places = abs(found.contributions).argsort()[::-1][:3].tolist()
    words = ", ".join(f"{found.tokens[place]} {found.contributions[place]:+.3f}" for place in places)
    line = f"{options.output}: {found.prediction}, most by {words}"
    show_lines([line, *describe_truncation(found.num_truncated)])
