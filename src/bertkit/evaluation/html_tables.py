"""Tables of the HTML report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bertkit.escaping import to_html
from bertkit.scores import format_score


def html_table(caption: str, header: Sequence[str], rows: Iterable[Sequence[object]], *, stacks: bool = False) -> str:
    """An HTML table; the first column is the header of each row. With ``stacks`` a phone shows a row as a block."""
    lines = [list(row) for row in rows]
    numeric = [bool(lines) and not isinstance(lines[0][place], str) for place in range(len(header))]
    head = "".join(
        f'<th scope="col" class="{"number" if is_number else "text"}">{to_html(name)}</th>'
        for name, is_number in zip(header, numeric, strict=True)
    )
    body = "".join(
        f'<tr><th scope="row">{to_html(str(row[0]))}</th>'
        f"{''.join(_cell(value, name) for value, name in zip(row[1:], header[1:], strict=True))}</tr>"
        for row in lines
    )
    kind = ' class="stack"' if stacks else ""
    return (
        f'<div class="wide"><table{kind}><caption>{to_html(caption)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def html_matrix(names: Sequence[str], counts: Sequence[Sequence[int]]) -> str:
    """A confusion matrix, each cell shaded by its share of the row."""
    head = "".join(f'<th scope="col" class="number">{to_html(name)}</th>' for name in names)
    lines = []
    for name, row in zip(names, counts, strict=True):
        size = max(1, sum(row))
        cells = "".join(
            f'<td class="cell" style="background: rgba(var(--shade), {0.5 * count / size:.2f})">{count:,}</td>'
            for count in row
        )
        lines.append(f'<tr><th scope="row">{to_html(name)}</th>{cells}</tr>')
    caption = (
        "<caption>Rows: gold class. Columns: predicted class. Stronger colour: a larger share of the row.</caption>"
    )
    return f'<div class="wide"><table>{caption}<tr><th scope="col">gold</th>{head}</tr>{"".join(lines)}</table></div>'


def _cell(value: object, name: str) -> str:
    label = f' data-label="{to_html(name)}"'
    if isinstance(value, str):
        return f'<td class="text"{label}>{to_html(value)}</td>'
    return f'<td class="number"{label}>{format_score(value) if isinstance(value, float) else f"{value:,}"}</td>'
