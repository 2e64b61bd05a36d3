from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib._pylab_helpers import Gcf
from matplotlib.image import imread

from bertkit.report.plots import _smooth, plot_confusion, plot_epochs, plot_sweep, plot_training


def assert_picture(path: Path) -> None:
    """A PNG of a decent size that is neither blank nor cut off: ink inside, white at the edges."""
    pixels = imread(path)[..., :3]
    height, width, _ = pixels.shape
    assert height > 300
    assert width > 300
    edges = np.concatenate([pixels[:3].ravel(), pixels[-3:].ravel(), pixels[:, :3].ravel(), pixels[:, -3:].ravel()])
    assert edges.min() == 1.0
    assert (pixels < 0.9).any(axis=2).mean() > 0.002
    assert list(path.parent.iterdir()) == [path]


def training_records(steps: int) -> list[dict[str, Any]]:
    draw = random.Random(7)
    records: list[dict[str, Any]] = []
    for step in range(1, steps + 1):
        loss = 3 + 7 * math.exp(-step / 40)
        records.append(
            {"kind": "train", "step": step, "loss/mlm": loss + draw.gauss(0, 0.2), "loss/nsp": 0.5, "lr": 1e-4}
        )
        if step % 37 == 0:
            records.append({"kind": "heldout", "step": step, "mlm": loss, "nsp": 0.4, "mlm_accuracy": 0.3})
    return records


@pytest.mark.parametrize("steps", [0, 1, 3, 137])
def test_training_curves_of_any_length(steps: int, tmp_path: Path) -> None:
    plot_training(training_records(steps), tmp_path / "training.png")
    assert_picture(tmp_path / "training.png")


def test_a_smoothed_line_neither_lags_at_the_start_nor_stays_noisy() -> None:
    line = [10.0 - 0.01 * step for step in range(500)]
    assert _smooth(line)[:250] == pytest.approx(line[:250])
    draw = random.Random(7)
    noisy = [draw.gauss(5, 1) for _ in range(2000)]
    assert np.std(_smooth(noisy)[100:]) < 0.3
    assert _smooth([1.0, 3.0]) == [1.0, 3.0]


@pytest.mark.parametrize(("seeds", "epochs"), [(1, 1), (3, 4), (7, 30)])
def test_epochs_of_seeds(seeds: int, epochs: int, tmp_path: Path) -> None:
    draw = random.Random(7)
    scores = {seed: [{"macro_f1": draw.random()} for _ in range(epochs)] for seed in range(seeds)}
    plot_epochs(scores, "macro_f1", tmp_path / "epochs.png")
    assert_picture(tmp_path / "epochs.png")


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
def test_confusion_of_any_classes(classes: list[str], tmp_path: Path) -> None:
    draw = random.Random(7)
    gold = draw.choices(classes, k=137)
    predicted = [name if draw.random() < 0.7 else draw.choice(classes) for name in gold]
    plot_confusion(gold, predicted, classes, tmp_path / "confusion.png")
    assert_picture(tmp_path / "confusion.png")


@pytest.mark.parametrize(("points", "seeds"), [(1, 1), (3, 5), (99, 2)])
def test_sweeps_of_any_size(points: int, seeds: int, tmp_path: Path) -> None:
    draw = random.Random(7)
    rows = [(f"lr={number}e-5 model=my_$model$", [draw.random() for _ in range(seeds)]) for number in range(points)]
    plot_sweep(rows, "accuracy", tmp_path / "sweep.png")
    assert_picture(tmp_path / "sweep.png")


def test_no_global_state_of_matplotlib_is_touched(tmp_path: Path) -> None:
    before = {key: mpl.rcParams[key] for key in mpl.rcParams if key != "backend"}
    plot_epochs({0: [{"accuracy": 0.5}]}, "accuracy", tmp_path / "epochs.png")
    assert {key: mpl.rcParams[key] for key in before} == before
    assert Gcf.get_all_fig_managers() == []
