"""Plots are complete images for any number of classes, seeds and steps."""

from __future__ import annotations

import math
import random
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib._pylab_helpers import Gcf
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.image import imread

from bertkit.report.plots import _smooth, plot_confusion, plot_epochs, plot_sweep, plot_training
from bertkit.report.style import contrast


def assert_plot(figure: Figure) -> None:
    """A picture that is neither blank nor cut off: something is drawn, and the edges are white."""
    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=150)
    pixels = imread(BytesIO(drawn.getvalue()))[..., :3]
    height, width, _ = pixels.shape
    assert height > 300
    assert width > 300
    edges = np.concatenate([pixels[:3].ravel(), pixels[-3:].ravel(), pixels[:, :3].ravel(), pixels[:, -3:].ravel()])
    assert edges.min() == 1.0
    assert (pixels < 0.9).any(axis=2).mean() > 0.002


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are drawn, in place of files."""
    found: list[Figure] = []
    monkeypatch.setattr("bertkit.report.plots.save", lambda figure, output: found.append(figure))
    return found


def training_records(steps: int) -> list[dict[str, Any]]:
    generator = random.Random(7)
    records: list[dict[str, Any]] = []
    for step in range(1, steps + 1):
        loss = 3 + 7 * math.exp(-step / 40)
        records.append(
            {"kind": "train", "step": step, "loss/mlm": loss + generator.gauss(0, 0.2), "loss/nsp": 0.5, "lr": 1e-4}
        )
        if step % 37 == 0:
            measured = {"mlm": loss, "nsp": 0.4, "mlm_accuracy": 0.3, "nsp_accuracy": 0.6, "nsp_base_rate": 0.52}
            records.append({"kind": "heldout", "step": step, **measured})
    return records


@pytest.mark.parametrize("steps", [0, 1, 3, 137])
def test_training_curves_of_any_length(steps: int, tmp_path: Path, figures: list[Figure]) -> None:
    plot_training(training_records(steps), tmp_path / "training.svg")
    assert_plot(figures[-1])


def names_of(panel: Axes) -> list[str]:
    legend = panel.get_legend()
    return [text.get_text() for text in legend.get_texts()] if legend else []


def test_training_curves_name_the_run_mark_the_length_of_rows_and_show_the_base_rate(
    figures: list[Figure], tmp_path: Path
) -> None:
    records = training_records(137)
    for record in records:
        if record["kind"] == "train":
            record["seq_length"] = 32 if record["step"] < 99 else 128
    plot_training(records, tmp_path / "mini" / "training.svg")
    assert figures[0].get_suptitle() == "Pre-training: mini"
    *losses, accuracy = figures[0].axes
    for panel in figures[0].axes:
        assert [text.get_text() for text in panel.texts if "rows" in text.get_text()] == ["rows of 128"]
        assert [99, 99] in [list(np.asarray(line.get_xdata())) for line in panel.get_lines()]
    assert [names_of(panel) for panel in losses] == [["training", "held out"]] * 2
    assert names_of(accuracy) == ["masked words", "next sentence", "next sentence, always one answer: 52.0%"]


def test_records_of_earlier_versions_have_no_length_of_rows(figures: list[Figure], tmp_path: Path) -> None:
    plot_training(training_records(40), tmp_path / "training.svg")
    assert not [text for panel in figures[0].axes for text in panel.texts if "rows" in text.get_text()]


def test_a_single_epoch_has_a_row_per_seed_and_lines_to_beat(figures: list[Figure], tmp_path: Path) -> None:
    epochs = {0: [{"accuracy": 0.5}], 3: [{"accuracy": 0.625}]}
    plot_epochs(epochs, "accuracy", tmp_path / "reviews" / "epochs.svg", {"bag of words": 0.75})
    (panel,) = figures[0].axes
    assert figures[0].get_suptitle() == "Accuracy on dev: reviews"
    assert [label.get_text() for label in panel.get_yticklabels()] == ["seed 0", "seed 3"]
    assert {"0.5000", "0.6250"} <= {text.get_text() for text in panel.texts}
    assert "bag of words: 0.7500" in names_of(panel)
    low, high = panel.get_xlim()
    assert low < 0.5 < 0.75 < high


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.6, 0.7, 1.0])
def test_counts_can_be_read_on_every_shade(share: float, figures: list[Figure], tmp_path: Path) -> None:
    right = round(100 * share)
    plot_confusion(["a"] * 100 + ["b"], ["a"] * right + ["b"] * (101 - right), ["a", "b"], tmp_path / "c.svg")
    (panel,) = figures[0].axes
    (image,) = panel.get_images()
    for text in panel.texts:
        column, row = (round(float(part)) for part in text.get_position())
        red, green, blue, _ = image.to_rgba(np.asarray(image.get_array()))[row, column]
        assert contrast(to_rgb(text.get_color()), (red, green, blue)) >= 4.5


def test_smoothing_keeps_the_start_and_reduces_noise() -> None:
    line = [10.0 - 0.01 * step for step in range(500)]
    assert _smooth(line)[:250] == pytest.approx(line[:250])
    generator = random.Random(7)
    noisy = [generator.gauss(5, 1) for _ in range(2000)]
    assert np.std(_smooth(noisy)[100:]) < 0.3
    assert _smooth([1.0, 3.0]) == [1.0, 3.0]


@pytest.mark.parametrize(("seeds", "epochs"), [(1, 1), (3, 4), (7, 30)])
def test_epochs_of_any_number_of_seeds(seeds: int, epochs: int, tmp_path: Path, figures: list[Figure]) -> None:
    generator = random.Random(7)
    scores = {seed: [{"macro_f1": generator.random()} for _ in range(epochs)] for seed in range(seeds)}
    plot_epochs(scores, "macro_f1", tmp_path / "epochs.svg")
    assert_plot(figures[-1])


def test_scores_to_beat_are_lines_with_names(tmp_path: Path, figures: list[Figure]) -> None:
    to_beat = {"most frequent answer": 0.5, "bag of words": 0.75}
    plot_epochs({0: [{"accuracy": 0.5}, {"accuracy": 0.6}]}, "accuracy", tmp_path / "epochs.svg", to_beat)
    (panel,) = figures[0].axes
    lines = {str(line.get_label()): line for line in panel.get_lines()}
    for name, score in to_beat.items():
        assert np.asarray(lines[f"{name}: {score:.4f}"].get_ydata()).tolist() == [score, score]
    assert panel.get_ylim()[1] > 0.75


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize(
    "classes",
    [
        ["negative", "positive"],
        ["$x^2$", "a_{b", "\\frac"],
        ["긍정", "부정"],
        [f"a very long name of a class, number {number}" for number in range(13)],
        [f"class {number}" for number in range(99)],
    ],
    ids=["two", "formulas", "korean", "long", "many"],
)
def test_confusion_of_any_classes(classes: list[str], tmp_path: Path, figures: list[Figure]) -> None:
    generator = random.Random(7)
    gold = generator.choices(classes, k=137)
    predicted = [name if generator.random() < 0.7 else generator.choice(classes) for name in gold]
    plot_confusion(gold, predicted, classes, tmp_path / "confusion.svg")
    assert_plot(figures[-1])


@pytest.mark.parametrize(("points", "seeds"), [(1, 1), (3, 5), (99, 2)])
def test_sweeps_of_any_size(points: int, seeds: int, tmp_path: Path, figures: list[Figure]) -> None:
    generator = random.Random(7)
    rows = [
        (f"lr={number}e-5 model=my_$model$", [generator.random() for _ in range(seeds)]) for number in range(points)
    ]
    plot_sweep(rows, "accuracy", tmp_path / "sweep.svg")
    assert_plot(figures[-1])


def test_undefined_scores_are_gaps_with_a_word(tmp_path: Path, figures: list[Figure]) -> None:
    nan = float("nan")
    epochs = {0: [{"pearson": nan}, {"pearson": 0.25}, {"pearson": nan}], 1: [{"pearson": nan}] * 3}
    plot_epochs(epochs, "pearson", tmp_path / "a.svg", {"bag of words": nan})
    names = [str(line.get_label()) for line in figures[0].axes[0].get_lines()]
    assert {"seed 0: 0.2500", "seed 1: undefined", "bag of words: undefined"} <= set(names)
    plot_sweep([("lr=1", [nan, 0.5]), ("lr=2", [nan])], "pearson", tmp_path / "b.svg")
    plot_epochs(epochs, "pearson", tmp_path / "epochs.svg")
    assert_plot(figures[-1])


def test_global_state_of_matplotlib_is_unchanged(tmp_path: Path) -> None:
    before = {key: mpl.rcParams[key] for key in mpl.rcParams if key != "backend"}
    plot_epochs({0: [{"accuracy": 0.5}]}, "accuracy", tmp_path / "epochs.svg")
    assert {key: mpl.rcParams[key] for key in before} == before
    assert Gcf.get_all_fig_managers() == []


def test_a_loss_that_is_not_finite_leaves_a_gap_in_its_own_place_only() -> None:
    assert _smooth([1.0, math.nan, 3.0, math.inf]) == pytest.approx([1.0, math.nan, 3.0, math.nan], nan_ok=True)
    assert _smooth([2.0, math.nan, *[4.0] * 198])[-1] == pytest.approx(4.0)
