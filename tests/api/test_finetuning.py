"""finetune and tune from Python: options, profiles and a second task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import bertkit
from bertkit.errors import BertkitError
from bertkit.finetuning.defaults import SMALL_MODELS
from bertkit.task_types import Columns, Split, TaskFiles, TextClassificationTask

pytestmark = pytest.mark.usefixtures("without_shape_checks")

QUICK = ["batch_size=13", "epochs=1", "limit=13"]


def test_paths_may_be_text_and_every_seed_is_run(workspace: Path, tmp_path: Path) -> None:
    result = bertkit.finetune(
        str(workspace / "reviews.csv"),
        model=str(workspace / "run"),
        output=str(tmp_path / "run"),
        first_seed=3,
        seeds=2,
        set=QUICK,
        progress="quiet",
    )
    assert result.folder == tmp_path / "run"
    assert [each.seed for each in result.seeds] == [3, 4]


def test_options_win_over_the_profile(workspace: Path, tmp_path: Path) -> None:
    output = tmp_path / "run"
    bertkit.finetune(
        workspace / "reviews.csv",
        model=workspace / "run",
        output=output,
        profile="roberta",
        epochs=1,
        limit=13,
        progress="quiet",
    )
    settings = {each.path: (each.value, each.origin) for each in bertkit.config_show(output)}
    assert settings["epochs"] == (1, "--epochs")
    assert settings["optimizer.lr"] == (1e-5, "--profile roberta")
    assert settings["seeds"] == (1, "default")


def test_a_second_task_continues_from_the_first(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "run"
    bertkit.finetune(
        workspace / "reviews.csv",
        then=workspace / "reviews.csv",
        model=workspace / "run",
        output=output,
        set=QUICK,
        progress="plain",
    )
    settings = {each.path: each.value for each in bertkit.config_show(output)}
    assert settings["model"] == str(output / "first")
    assert "it keeps its heads" in capsys.readouterr().err
    assert {each.path: each.value for each in bertkit.config_show(output / "first")}["model"] == str(workspace / "run")


def test_the_second_task_is_read_before_the_first_is_trained(workspace: Path, tmp_path: Path) -> None:
    output, second = tmp_path / "run", tmp_path / "second.csv"
    second.write_text("review,label\ngood,a\npoor,a\n")
    with pytest.raises(BertkitError, match='every row has the label "a"'):
        bertkit.finetune(
            workspace / "reviews.csv", then=second, model=workspace / "run", output=output, set=QUICK, progress="quiet"
        )
    assert not (output / "first").exists()


def test_a_setting_that_the_second_task_does_not_have_is_found_before_the_first_is_trained(
    workspace: Path, tmp_path: Path
) -> None:
    second = tmp_path / "numbers.csv"
    second.write_text("review,score\n" + "".join(f"word {number},{number}.5\n" for number in range(36)))
    with pytest.raises(BertkitError, match=r"for the task of --then, files:numbers\.csv: .*task\.fold_labels"):
        bertkit.finetune(
            workspace / "reviews.csv",
            then=second,
            model=workspace / "run",
            output=tmp_path / "run",
            set=[*QUICK, "task.fold_labels=true"],
            progress="quiet",
        )
    assert not (tmp_path / "run" / "first").exists()


def test_a_model_of_pairs_goes_on_with_single_texts(workspace: Path, tmp_path: Path) -> None:
    """With the same labels, but without its head, which reads two texts."""
    labels = ("no", "yes")
    single, pairs = tmp_path / "single.csv", tmp_path / "pairs.csv"
    single.write_text("text,label\n" + "".join(f"word {row},{labels[row % 2]}\n" for row in range(36)))
    rows = "".join(f"word {row},other {row},{labels[row % 2]}\n" for row in range(36))
    pairs.write_text("premise,hypothesis,label\n" + rows)
    run = tmp_path / "run"
    bertkit.finetune(pairs, then=single, model=workspace / "run", output=run, set=QUICK, progress="quiet")
    heads = []
    for folder in (run / "first", run):
        settings = {each.path: each.value for each in bertkit.config_show(folder)}
        heads.append((settings["task.pair"], settings["task.pair_head"]))
    assert heads == [(True, True), (False, False)]


def test_a_limit_and_a_teacher_are_for_the_first_task_alone(workspace: Path, tmp_path: Path) -> None:
    output, second, texts = tmp_path / "run", tmp_path / "second.csv", tmp_path / "texts.txt"
    second.write_text(
        "review,label\n" + "".join(f"word {number},{('no', 'yes')[number % 2]}\n" for number in range(36))
    )
    texts.write_text("a good film\na poor film\n")
    bertkit.finetune(
        workspace / "reviews.csv",
        then=second,
        model=workspace / "run",
        teacher=workspace / "tuned",
        unlabelled=texts,
        output=output,
        limit=13,
        set=["batch_size=13", "epochs=1", "layer_weight=1.0", "temperature=4.0", "teacher_weight=0.5"],
        progress="quiet",
    )
    names = ("limit", "teacher", "unlabelled", "layer_weight", "temperature", "teacher_weight")
    first, last = ({each.path: each.value for each in bertkit.config_show(run)} for run in (output / "first", output))
    assert [first[name] for name in names] == [13, str(workspace / "tuned"), str(texts), 1.0, 4.0, 0.5]
    assert [last[name] for name in names] == [None, None, None, 0.0, 2.0, 1.0]


def test_the_labels_in_the_order_of_the_model_keep_their_spellings_and_their_positive_class(
    workspace: Path, tmp_path: Path
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("review,label\n" + "".join(f"word {number},{number % 2}\n" for number in range(36)))
    columns = Columns(first="review", label="label")
    files = TaskFiles(splits={name: Split(files=(str(table),), columns=columns) for name in ("train", "dev")})
    task = TextClassificationTask(name="t", metric="f1", labels=("good", "bad"), spellings=("1", "0"), files=files)
    bertkit.finetune(task, model=workspace / "tuned", output=tmp_path / "run", set=QUICK, progress="quiet")
    settings = {each.path: each.value for each in bertkit.config_show(tmp_path / "run")}
    assert [settings[f"task.{name}"] for name in ("labels", "spellings", "positive")] == [
        ["bad", "good"],
        ["0", "1"],
        "bad",
    ]


@pytest.mark.parametrize("name", ["model", "output"])
def test_a_setting_takes_the_place_of_no_path(workspace: Path, tmp_path: Path, name: str) -> None:
    """The record would name a model that was not trained."""
    with pytest.raises(BertkitError, match=f"--set {name}: the {name} is given by --{name}"):
        bertkit.finetune(
            workspace / "reviews.csv",
            model=workspace / "run",
            output=tmp_path / "run",
            set={name: "x"},
            progress="quiet",
        )


def test_the_grid_may_be_a_dictionary(workspace: Path, tmp_path: Path) -> None:
    result = bertkit.tune(
        workspace / "reviews.csv",
        model=workspace / "run",
        output=tmp_path / "sweep",
        grid={"lr": [0.0, 0.01], "batch_size": [13]},
        epochs=1,
        limit=13,
        progress="quiet",
    )
    assert len(result.points) == 2
    first, second = (point.mean for point in result.points)
    assert first is not None
    assert second is not None
    assert first >= second


def test_an_option_cannot_be_given_and_varied(workspace: Path, tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match="lr is in --grid and has a value of its own"):
        bertkit.tune(
            workspace / "reviews.csv",
            model=workspace / "run",
            output=tmp_path / "sweep",
            grid=["lr=1,2"],
            lr=0.5,
            progress="quiet",
        )


@pytest.mark.parametrize(
    ("grid", "given", "message"),
    [
        (["lr=0.01"], ["optimizer.muon_lr=0.1"], "--set: optimizer.muon_lr has no effect without optimizer.kind=muon"),
        (["optimizer.muon_lr=0.1,0.2"], [], "--grid: optimizer.muon_lr has no effect without optimizer.kind=muon"),
        (["optimizer.muon_lr=0.1,0.2", "optimizer.kind=adamw,lamb"], [], "--grid: optimizer.muon_lr has no effect"),
        (["optimizer.muon_lr=0.1,0.2", "optimizer.kind=muon,nosuch"], [], "nosuch"),
    ],
)
def test_what_no_point_of_a_sweep_reads_is_an_error(
    workspace: Path, tmp_path: Path, grid: list[str], given: list[str], message: str
) -> None:
    """A grid whose points differ in nothing; the last one is refused for another reason."""
    with pytest.raises(BertkitError, match=message):
        bertkit.tune(
            workspace / "reviews.csv",
            model=workspace / "run",
            output=tmp_path / "sweep",
            grid=grid,
            set=given,
            progress="quiet",
        )


def test_a_small_model_has_settings_of_its_own(workspace: Path, tmp_path: Path) -> None:
    """Without any option, the printed next step is the best setting that is known for its size."""
    chosen: dict[str, dict[str, Any]] = {
        "plain": {},
        "mean": {"set": ["task.pooling=mean"]},
        "published": {"profile": "bert"},
    }
    settings = {}
    for name, options in chosen.items():
        options["set"] = [*options.get("set", []), "batch_size=33", "limit=33"]
        bertkit.finetune(
            workspace / "reviews.csv", model=workspace / "run", output=tmp_path / name, progress="quiet", **options
        )
        settings[name] = {each.path: (each.value, each.origin) for each in bertkit.config_show(tmp_path / name)}
    measured = {name: settings["plain"][name] for name in ("optimizer.lr", "epochs")}
    assert {origin for _, origin in measured.values()} == {SMALL_MODELS}
    assert settings["mean"]["task.pooling"] == ("mean", "--set")
    assert settings["mean"]["optimizer.lr"] == measured["optimizer.lr"]
    assert settings["published"]["optimizer.lr"] == (5e-5, "default")
    assert settings["published"]["epochs"] == (3, "default")


def test_what_a_sweep_varies_has_no_default(workspace: Path, tmp_path: Path) -> None:
    result = bertkit.tune(
        workspace / "reviews.csv",
        model=workspace / "run",
        output=tmp_path / "sweep",
        grid={"task.pooling": ["cls", "max"]},
        epochs=1,
        limit=13,
        progress="quiet",
    )
    assert [point.mean is None for point in result.points] == [False, False]


@pytest.mark.parametrize("scored", [True, False])
def test_pairs_make_a_model_of_embeddings(workspace: Path, tmp_path: Path, scored: bool) -> None:
    words = (workspace / "a.txt").read_text().split()
    rows = [
        f"{words[row]} {words[row + 1]},{words[row + 2]} {words[row]}" + f",{row % 5}" * scored for row in range(40)
    ]
    header = "first_text,second_text" + ",score" * scored
    (tmp_path / "pairs.csv").write_text("\n".join([header, *rows]) + "\n")
    result = bertkit.finetune(
        tmp_path / "pairs.csv",
        model=workspace / "run",
        output=tmp_path / "run",
        kind="similarity",
        epochs=2,
        batch_size=7,
        progress="quiet",
        set=["task.pooling=max"],
    )
    assert set(result.best.scores) == ({"spearman", "pearson"} if scored else {"roc_auc"})
    model = bertkit.load(tmp_path / "run")
    assert model.embedding.pool == "max"
    assert -1 <= model.similarity("river stone", "stone river") <= 1
    evaluation = bertkit.evaluate(tmp_path / "run", progress="quiet")
    assert evaluation.scores.keys() >= set(result.best.scores)


def test_a_named_task_of_scored_pairs_may_be_trained_for_vectors(workspace: Path, tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match="glue:sst2 has no scores of pairs of texts"):
        bertkit.finetune("glue:sst2", model=workspace / "run", output=tmp_path / "run", kind="similarity")
