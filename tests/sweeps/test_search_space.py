from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.finetuning.record import FinetuneRun
from bertkit.sweeps.search_space import Axis, Point, checked_runs, fit_ranges, grid_points, read_axes
from bertkit.tasks.glue import sst2

BASE = FinetuneRun(task=sst2, model=Path("model"), output=Path("sweep"))


def check(axes: Sequence[Axis], *, sampled: bool) -> list[FinetuneRun]:
    return list(checked_runs(axes, BASE, sampled=sampled))


def test_the_default_grid_is_that_of_the_paper() -> None:
    assert [(axis.name, axis.values) for axis in read_axes(())] == [
        ("lr", ("5e-5", "3e-5", "2e-5")),
        ("batch_size", ("16", "32")),
        ("epochs", ("2", "3", "4")),
    ]
    assert [axis.name for axis in read_axes({}, given=["optimizer.lr"])] == ["batch_size", "epochs"]


def test_the_usual_axes_of_a_small_model_are_around_its_learning_rate() -> None:
    measured = {"optimizer.lr": 3e-4, "epochs": 10, "task.pooling": "mean"}
    assert read_axes((), measured=measured) == (
        Axis("lr", ("0.0006", "0.0003", "0.00015")),
        Axis("batch_size", ("16", "32")),
    )
    assert read_axes((), measured={"optimizer.lr": 3e-4}, ranges=True) == (
        Axis("lr", low=1e-4, high=9e-4),
        Axis("batch_size", ("16", "32")),
        Axis("epochs", low=2, high=4),
    )
    assert read_axes((), measured={"epochs": 10}) == read_axes(())


def test_something_is_varied() -> None:
    given = ("optimizer.lr", "batch_size", "epochs")
    with pytest.raises(BertkitError, match="nothing is varied: lr, batch_size, epochs have one value each") as caught:
        read_axes((), given=given)
    assert caught.value.exit_code == WRONG_USAGE
    assert [axis.name for axis in read_axes(["limit=7,9"], given=given)] == ["limit"]


@pytest.mark.parametrize("value", [3e-5, "mean"])
def test_a_single_value_is_no_list(value: object) -> None:
    with pytest.raises(BertkitError, match="must be a list of values") as caught:
        read_axes({"task.pooling": value})
    assert caught.value.exit_code == WRONG_USAGE


def test_an_array_is_a_list_of_values() -> None:
    (axis,) = read_axes({"lr": np.array([0.5, 0.25])})
    assert axis.values == ("0.5", "0.25")


def test_the_default_ranges_span_the_grid_of_the_paper() -> None:
    assert read_axes((), ranges=True) == (
        Axis("lr", low=2e-5, high=5e-5),
        Axis("batch_size", ("16", "32")),
        Axis("epochs", low=2, high=4),
    )


def test_ranges_are_integer_logarithmic_or_linear() -> None:
    axes = read_axes(["lr=1e-5..1e-4", "epochs=2..4", "layer_decay=0.8..1.0"], ranges=True)
    assert [(axis.is_integer, axis.is_logarithmic) for axis in axes] == [(False, True), (True, False), (False, False)]
    for wrong in ("lr=a..b", "lr=2..1", "lr=1..2..3"):
        with pytest.raises(BertkitError, match=r"LOW\.\.HIGH|lower end"):
            read_axes([wrong], ranges=True)


def test_whole_ends_of_a_setting_with_fractions_are_no_list() -> None:
    axes = fit_ranges(read_axes(["optimizer.weight_decay=0..1", "epochs=2..4", "limit=7,9"], ranges=True), BASE)
    assert [axis.is_integer for axis in axes[:2]] == [False, True]
    assert axes[2].values == ("7", "9")


def test_the_points_of_a_grid_are_all_combinations() -> None:
    points = list(grid_points(read_axes(["lr=1e-3,1e-2", "batch_size=13,33"])))
    assert [str(point) for point in points] == [
        "lr=1e-3 batch_size=13",
        "lr=1e-3 batch_size=33",
        "lr=1e-2 batch_size=13",
        "lr=1e-2 batch_size=33",
    ]
    assert points[0].name == "lr=1e-3,batch_size=13"


def test_the_settings_of_a_point_replace_those_of_the_base_run() -> None:
    run = Point((("lr", "1e-3"), ("schedule.warmup", "0.2"), ("epochs", "7"))).run(BASE, Path("sweep/point"))
    assert (run.optimizer.lr, run.schedule.warmup, run.epochs, run.output) == (1e-3, 0.2, 7, Path("sweep/point"))
    assert run.batch_size == BASE.batch_size


def test_characters_that_file_systems_lack_are_replaced_in_folder_names() -> None:
    assert Point((("task.text", "a/b c"),)).name == "task.text=a_b_c"


@pytest.mark.parametrize("name", ["task.metric", "task.heldout", "dev_limit"])
def test_what_the_configurations_are_compared_by_is_the_same_for_all(name: str) -> None:
    with pytest.raises(BertkitError, match=f"{name} cannot be varied: the configurations are compared"):
        read_axes([f"{name}=1,2"])


def test_python_values_make_the_same_axes_as_text() -> None:
    assert read_axes({"lr": [1e-3, 1e-2], "batch_size": [13]}) == read_axes(["lr=0.001,0.01", "batch_size=13"])


def test_values_of_python_are_those_of_json() -> None:
    (limit, head, lists) = read_axes(
        {"limit": [None, 100], "task.question_head": [True, False], "unlabelled": [Path("a.txt"), "b.txt"]}
    )
    assert limit.values == ("null", "100")
    assert head.values == ("true", "false")
    assert lists.values == ("a.txt", "b.txt")


def test_a_point_whose_folder_name_is_too_long_is_refused() -> None:
    with pytest.raises(BertkitError, match="has no folder name of its own") as caught:
        check(read_axes([f"optimizer.beta2=0.{'8' * 300}"]), sampled=False)
    assert caught.value.exit_code == WRONG_USAGE


def test_one_value_in_two_spellings_is_one_point() -> None:
    with pytest.raises(BertkitError, match=r"--grid: lr=5e-5 and lr=0\.00005 are the same settings"):
        check(read_axes(["lr=5e-5,3e-5,0.00005"]), sampled=False)


def test_of_sampled_points_each_end_is_checked_and_not_their_product() -> None:
    axes = read_axes(["lr=1e-5..3e-5", "batch_size=8,16,32", "epochs=1..3"], ranges=True)
    found = [(run.optimizer.lr, run.batch_size, run.epochs) for run in check(axes, sampled=True)]
    assert found == [(1e-5, 8, 1), (3e-5, 8, 1), (1e-5, 16, 1), (1e-5, 32, 1), (1e-5, 8, 3)]
    assert len(check(axes, sampled=False)) == 12


def test_both_ends_of_a_range_are_checked() -> None:
    check(read_axes(["epochs=1..3"], ranges=True), sampled=True)
    with pytest.raises(BertkitError, match="epochs is 0; it must be from 1 to"):
        check(read_axes(["epochs=0..3"], ranges=True), sampled=True)
