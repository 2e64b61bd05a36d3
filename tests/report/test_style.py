"""The style of plots: text that is shown as it is, legends, atomic files."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.report import style
from bertkit.report.style import add_legend, annotate, make_figure, save, set_panel_title


def test_text_is_not_parsed_as_a_formula() -> None:
    figure, (panel,) = make_figure(1, width=3, height=2, title="$x_")
    panel.plot([1, 2], label="$y_")
    set_panel_title(panel, "$z_")
    add_legend(panel)
    legend = panel.get_legend()
    assert legend is not None
    texts = [figure.get_suptitle(), panel.get_title(loc="left"), legend.get_texts()[0].get_text()]
    assert texts == ["$x_", "$z_", "$y_"]
    assert not legend.get_texts()[0].get_parse_math()


def test_figure_has_its_panels_side_by_side() -> None:
    figure, panels = make_figure(3, width=6, height=2, title="three")
    assert len(panels) == 3
    assert figure.get_size_inches().tolist() == [6, 2]
    assert not any(panel.spines["top"].get_visible() for panel in panels)


def test_legend_is_placed_at_its_anchor() -> None:
    _, (panel,) = make_figure(1, width=3, height=2, title="")
    panel.plot([1, 2], label="a")
    panel.plot([2, 1], label="b")
    add_legend(panel, loc="lower left", anchor=(0, 1.12), ncols=2)
    legend = panel.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
    assert not legend.get_bbox_to_anchor().bounds[3]


def test_annotation_is_above_its_point() -> None:
    _, (panel,) = make_figure(1, width=3, height=2, title="")
    annotate(panel, "0.5", (1.0, 2.0))
    (text,) = panel.texts
    assert (text.get_text(), text.xy, text.xyann) == ("0.5", (1.0, 2.0), (0, 7))  # type: ignore[attr-defined]


def test_a_failed_plot_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure, _ = make_figure(1, width=3, height=2, title="")
    save(figure, tmp_path / "plots" / "a.png")
    before = (tmp_path / "plots" / "a.png").read_bytes()
    monkeypatch.setattr(figure, "savefig", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save(figure, tmp_path / "plots" / "a.png")
    assert [path.name for path in (tmp_path / "plots").iterdir()] == ["a.png"]
    assert (tmp_path / "plots" / "a.png").read_bytes() == before


def test_letters_without_a_font_do_not_warn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(style, "_installed_fonts", lambda: ["DejaVu Sans"])
    figure, _ = make_figure(1, width=3, height=2, title="긍정")
    save(figure, tmp_path / "a.png")
    assert (tmp_path / "a.png").exists()
