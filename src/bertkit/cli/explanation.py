"""The verbs that look into a model: attention and explain."""

from __future__ import annotations

from bertkit.cli.output import show_lines
from bertkit.options.explanation import AttentionOptions, ExplainOptions


def attention(options: AttentionOptions) -> None:
    """Write the page, and say where it is."""
    from bertkit import api

    maps = api.attention(**vars(options))
    layers, heads = maps.weights.shape[:2]
    show_lines([f"{options.output}: {layers} layers of {heads} heads on {len(maps.tokens)} tokens"])


def explain(options: ExplainOptions) -> None:
    """Write the page, and show the tokens that matter most."""
    from bertkit import api

    found = api.explain(**vars(options))
    places = abs(found.contributions).argsort()[::-1][:3].tolist()
    words = ", ".join(f"{found.tokens[place]} {found.contributions[place]:+.3f}" for place in places)
    show_lines([f"{options.output}: {found.prediction}, most by {words}"])
