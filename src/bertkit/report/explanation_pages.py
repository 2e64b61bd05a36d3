"""Attention and saliency as HTML pages that work alone: no network, a light and a dark theme."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bertkit.errors import count_of, verb_of
from bertkit.escaping import to_html
from bertkit.report.html_page import html_page

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --soft: #5b6570; --line: #11549c; --for: 20, 120, 60;
  --against: 190, 40, 40; --rule: #d3d9e0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ebef; --paper: #14171b; --soft: #a4aeb9; --line: #83b7ff;
  --for: 80, 200, 120; --against: 255, 120, 120; --rule: #3a424b; } }
body { background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; margin: 0 auto;
  max-width: 60rem; padding: 1rem; }
h1 { font-size: 1.4rem; } .soft { color: var(--soft); } .wide { overflow-x: auto; }
.token { display: inline-block; padding: .1rem .25rem; margin: .1rem; border-radius: .2rem; }
table { border-collapse: collapse; } th, td { padding: .2rem .6rem; text-align: left; border-bottom: 1px solid
  var(--rule); } td { text-align: right; font-variant-numeric: tabular-nums; }
select { font: inherit; min-height: 2.75rem; } label { margin-right: 1rem; }
svg text { fill: var(--ink); font: 14px system-ui, sans-serif; } svg line { stroke: var(--line); stroke-width: 2; }
svg g[tabindex] { cursor: pointer; } :focus-visible { outline: 3px solid var(--line); }
"""
_ROW = 24
"""Pixels between two tokens."""

_DIGITS = 3

# The page is drawn without JavaScript too: then it shows the mean of all heads of the last layer.
_SCRIPT = """
const data = JSON.parse(document.getElementById("weights").textContent);
const lines = [...document.querySelectorAll("svg line")];
const pickers = ["layer", "head"].map(name => document.getElementById(name));
let chosen = null;
function draw() {
  const [layer, head] = pickers.map(picker => picker.value);
  const heads = data[layer];
  for (const line of lines) {
    const [i, j] = [line.dataset.i, line.dataset.j];
    const share = head === "mean" ? heads.reduce((sum, each) => sum + each[i][j], 0) / heads.length : heads[head][i][j];
    line.style.opacity = chosen === null || chosen === i ? share : 0;
  }
}
pickers.forEach(picker => picker.addEventListener("change", draw));
for (const token of document.querySelectorAll("svg g[tabindex]")) {
  const choose = () => { chosen = chosen === token.dataset.i ? null : token.dataset.i; draw(); };
  token.addEventListener("click", choose);
  token.addEventListener("keydown", event => { if (event.key === "Enter" || event.key === " ") {
    event.preventDefault(); choose(); } });
}
document.getElementById("pickers").hidden = false;
draw();
"""


def describe_truncation(num_truncated: int) -> list[str]:
    """What is said of ``num_truncated`` tokens that the model has not read; nothing if it has read all."""
    if not num_truncated:
        return []
    lost = f"{count_of(num_truncated, 'token')} at the end {verb_of(num_truncated, 'was', 'were')}"
    return [f"{lost} left out: the text is longer than the model reads."]


def render_attention(tokens: Sequence[str], weights: NDArray[np.float32], *, model: str, notes: Sequence[str]) -> str:
    """Lines from each token on the left to those that it attends to, with pickers of layer and head.

    ``weights`` are (layers, heads, tokens, tokens).
    """
    layers, heads = weights.shape[:2]
    options = "".join(
        f'<option value="{n}"{" selected" if n == layers - 1 else ""}>{n + 1}</option>' for n in range(layers)
    )
    of_heads = "".join(f'<option value="{n}">{n + 1}</option>' for n in range(heads))
    pickers = (
        f'<p id="pickers" hidden><label>Layer <select id="layer">{options}</select></label>'
        f'<label>Head <select id="head"><option value="mean">mean of all</option>{of_heads}</select></label></p>'
    )
    data = json.dumps(np.round(weights.astype(float), _DIGITS).tolist(), separators=(",", ":"))
    body = [
        f"<h1>Attention of {to_html(model)}</h1>",
        *(f'<p class="soft">{to_html(note)}</p>' for note in notes),
        '<p class="soft">A line from a token on the left to one on the right is as strong as the attention that it '
        "gives. Choose a token to see its lines alone.</p>",
        pickers,
        f'<div class="wide">{_draw(tokens, weights[-1].mean(axis=0))}</div>',
        f'<script type="application/json" id="weights">{data}</script><script>{_SCRIPT}</script>',
    ]
    return html_page(f"Attention of {model}", _STYLE, body)


def render_saliency(
    tokens: Sequence[str], contributions: NDArray[np.float64], *, model: str, prediction: str, notes: Sequence[str]
) -> str:
    """The tokens coloured by their contributions to the prediction, and a table of them."""
    strongest = float(np.abs(contributions).max()) or 1.0
    spans = "".join(
        f'<span class="token" style="background: rgba(var(--{"for" if value > 0 else "against"}), '
        f'{abs(value) / strongest:.2f})" title="{value:+.3f}">{to_html(token)}</span> '
        for token, value in zip(tokens, contributions.tolist(), strict=True)
    )
    rows = "".join(
        f'<tr><th scope="row">{to_html(tokens[place])}</th><td>{contributions[place]:+.3f}</td></tr>'
        for place in np.argsort(-np.abs(contributions), kind="stable").tolist()
    )
    body = [
        f"<h1>Why {to_html(model)} predicts {to_html(prediction)}</h1>",
        *(f'<p class="soft">{to_html(note)}</p>' for note in notes),
        f"<p>{spans}</p>",
        f'<table><thead><tr><th scope="col">token</th><th scope="col">contribution</th></tr></thead><tbody>{rows}'
        "</tbody></table>",
    ]
    return html_page(f"Why {model} predicts {prediction}", _STYLE, body)


def _draw(tokens: Sequence[str], weights: NDArray[np.float32]) -> str:
    """The tokens twice, and a line for each pair."""
    height = _ROW * (len(tokens) + 1)
    lines = "".join(
        f'<line data-i="{i}" data-j="{j}" x1="180" y1="{_y(i)}" x2="420" y2="{_y(j)}" '
        f'style="opacity: {weights[i, j]:.{_DIGITS}f}"/>'
        for i in range(len(tokens))
        for j in range(len(tokens))
    )
    left = "".join(
        f'<g tabindex="0" role="button" data-i="{i}" aria-label="lines of {to_html(token)}">'
        f'<text x="172" y="{_y(i) + 5}" text-anchor="end">{to_html(token)}</text></g>'
        for i, token in enumerate(tokens)
    )
    right = "".join(f'<text x="428" y="{_y(i) + 5}">{to_html(token)}</text>' for i, token in enumerate(tokens))
    size = f'viewBox="0 0 600 {height}" width="600" height="{height}"'
    return f'<svg {size} role="group" aria-label="attention between tokens">{lines}{left}{right}</svg>'


def _y(place: int) -> int:
    return _ROW * (place + 1)
