"""A small model that learns from a larger one."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

import pytest
from tests.tiny_runs import WORDS

import bertkit
from bertkit.errors import BertkitError
from bertkit.runs import read_metrics, read_run

pytestmark = pytest.mark.usefixtures("without_shape_checks", "no_pictures")

QUICK: dict[str, Any] = {"epochs": 1, "batch_size": 13, "progress": "quiet"}
RULE = "river"


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Few labelled texts and many without a label; a text with the word "river" is good."""
    folder, draw = tmp_path_factory.mktemp("texts"), random.Random(7)
    found = {}
    for name, count, labelled in (("few", 40, True), ("many", 700, True), ("more", 700, False)):
        found[name] = folder / f"{name}.csv"
        with found[name].open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("review", "label") if labelled else ("review",))
            for _ in range(count):
                words = draw.choices(WORDS, k=6)
                label = ["good" if RULE in words else "bad"]
                writer.writerow([" ".join(words), *(label if labelled else [])])
    return found


@pytest.fixture(scope="module")
def teacher(texts: dict[str, Path], model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("teacher") / "run"
    options = {**QUICK, "epochs": 12, "lr": 3e-3, "set": ["task.pooling=max"]}
    with pytest.MonkeyPatch.context() as patch:
        for name in ("plot_epochs", "plot_confusion"):
            patch.setattr(f"bertkit.finetuning.run.{name}", lambda *arguments: None)
        assert bertkit.finetune(texts["many"], model=model, output=output, **options).best.scores["accuracy"] > 0.9
    return output


@pytest.mark.slow
def test_a_student_learns_from_unlabelled_texts_what_few_labels_do_not_teach(
    texts: dict[str, Path], model: Path, teacher: Path, tmp_path: Path
) -> None:
    options = {**QUICK, "epochs": 12, "lr": 3e-3, "set": ["task.pooling=max"], "dev": texts["many"]}
    alone = bertkit.finetune(texts["few"], model=model, output=tmp_path / "alone", **options)
    taught = bertkit.finetune(
        texts["few"],
        model=model,
        output=tmp_path / "taught",
        teacher=teacher,
        unlabelled=texts["more"],
        **{**options, "epochs": 6},
    )
    assert taught.best.scores["accuracy"] > alone.best.scores["accuracy"]
    assert read_run(tmp_path / "taught")["run"]["teacher"] == str(teacher)
    (first, *_) = [
        record for record in read_metrics(tmp_path / "taught" / "metrics.jsonl") if record["kind"] == "train"
    ]
    assert {"class", "teacher"} <= first.keys()


def test_layers_are_matched_with_a_weight(texts: dict[str, Path], model: Path, teacher: Path, tmp_path: Path) -> None:
    options = {**QUICK, "epochs": 4, "lr": 3e-3, "set": ["layer_weight=3", "teacher_weight=0"]}
    bertkit.finetune(
        texts["few"], model=model, output=tmp_path / "run", teacher=teacher, unlabelled=texts["more"], **options
    )
    losses = [
        record["teacher_layers"]
        for record in read_metrics(tmp_path / "run" / "metrics.jsonl")
        if record["kind"] == "train"
    ]
    assert 0 < sum(losses[-9:]) < 0.7 * sum(losses[:9])
    found = bertkit.export(tmp_path / "run", to="huggingface", output=tmp_path / "out", progress="quiet")
    assert found.heads == ("class",)


def test_the_weight_of_the_teacher_can_be_0(texts: dict[str, Path], model: Path, teacher: Path, tmp_path: Path) -> None:
    """Then the loss against it changes nothing; only the dropout of the head is drawn once more."""
    options = {**QUICK, "set": ["teacher_weight=0", "temperature=4"]}
    result = bertkit.finetune(texts["few"], model=model, output=tmp_path / "run", teacher=teacher, **options)
    assert result.best.scores["accuracy"] > 0


def test_the_saved_student_has_the_head_of_its_task_alone(
    texts: dict[str, Path], model: Path, teacher: Path, tmp_path: Path
) -> None:
    bertkit.finetune(texts["few"], model=model, output=tmp_path / "run", teacher=teacher, **QUICK)
    found = bertkit.export(tmp_path / "run", to="huggingface", output=tmp_path / "out", progress="quiet")
    assert found.heads == ("class",)
    assert found.left_out == ()


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Pairs of texts with a label."""
    table = tmp_path / "pairs.csv"
    rows = (f"{word} stone,{word},{('bad', 'good')[n % 2]}\n" for n, word in enumerate(WORDS * 4))
    table.write_text("first,second,label\n" + "".join(rows))
    return table


def test_a_teacher_of_single_texts_is_refused_for_pairs(
    pairs: Path, model: Path, teacher: Path, tmp_path: Path
) -> None:
    with pytest.raises(BertkitError, match=r"reads single texts; .* has pairs of texts"):
        bertkit.finetune(
            pairs, text="first", pair="second", model=model, output=tmp_path / "run", teacher=teacher, **QUICK
        )


@pytest.mark.parametrize("weight", [0.0, 1.0], ids=["logits", "layers"])
def test_a_teacher_of_another_library_reads_pairs(weight: float, pairs: Path, model: Path, tmp_path: Path) -> None:
    """Its folder does not say that its task is for pairs."""
    columns: dict[str, Any] = {"text": "first", "pair": "second", "model": model}
    cls = [*QUICK.get("set", []), "task.pooling=cls", "task.pair_head=false"]
    bertkit.finetune(pairs, output=tmp_path / "teacher", **{**QUICK, **columns, "set": cls})
    bertkit.export(tmp_path / "teacher", to="huggingface", output=tmp_path / "out", progress="quiet")
    settings = [*cls, f"layer_weight={weight}"]
    taught: dict[str, Any] = {**QUICK, **columns, "set": settings, "teacher": tmp_path / "out"}
    assert bertkit.finetune(pairs, output=tmp_path / "student", **taught).best.scores


def test_layers_are_not_matched_where_a_pair_has_two_rows(pairs: Path, model: Path, tmp_path: Path) -> None:
    columns: dict[str, Any] = {"text": "first", "pair": "second", "model": model}
    bertkit.finetune(pairs, output=tmp_path / "teacher", **QUICK, **columns)
    both: dict[str, Any] = {**QUICK, **columns, "set": ["layer_weight=1", "task.both_orders=true"]}
    with pytest.raises(BertkitError, match=r"layer_weight matches one row per text"):
        bertkit.finetune(pairs, output=tmp_path / "run", teacher=tmp_path / "teacher", **both)


def test_a_teacher_of_other_classes_is_refused(
    texts: dict[str, Path], model: Path, teacher: Path, tmp_path: Path
) -> None:
    table = tmp_path / "other.csv"
    table.write_text("review,label\n" + "".join(f"{word} stone,{'ab'[n % 2]}\n" for n, word in enumerate(WORDS * 4)))
    with pytest.raises(BertkitError, match=r"predicts the classes bad, good; .* has a, b"):
        bertkit.finetune(table, model=model, output=tmp_path / "run", teacher=teacher, **QUICK)


def test_a_teacher_is_for_classes(model: Path, teacher: Path, tmp_path: Path) -> None:
    table = tmp_path / "numbers.csv"
    table.write_text("review,label\n" + "".join(f"{word} stone,{n / 7}\n" for n, word in enumerate(WORDS * 4)))
    with pytest.raises(BertkitError, match="teacher is for tasks with one class per text"):
        bertkit.finetune(table, model=model, output=tmp_path / "run", teacher=teacher, kind="number", **QUICK)


def test_unlabelled_texts_need_a_teacher(texts: dict[str, Path], model: Path, tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match="unlabelled has no effect without a teacher"):
        bertkit.finetune(texts["few"], model=model, output=tmp_path / "run", unlabelled=texts["more"], **QUICK)


@pytest.mark.parametrize("setting", ["layer_weight=1", "temperature=4", "teacher_weight=0"])
def test_settings_of_distillation_need_a_teacher(
    setting: str, texts: dict[str, Path], model: Path, tmp_path: Path
) -> None:
    options = {**QUICK, "set": [setting]}
    with pytest.raises(BertkitError, match=f"{setting.partition('=')[0]} has no effect without a teacher"):
        bertkit.finetune(texts["few"], model=model, output=tmp_path / "run", **options)


def test_layers_need_several_texts_at_a_time(
    texts: dict[str, Path], model: Path, teacher: Path, tmp_path: Path
) -> None:
    options = {**QUICK, "set": ["layer_weight=1", "micro_batch_size=2"]}
    with pytest.raises(BertkitError, match="batch_size and micro_batch_size must be at least 3"):
        bertkit.finetune(texts["few"], model=model, output=tmp_path / "run", teacher=teacher, **options)


def test_a_teacher_that_does_not_exist_is_named(texts: dict[str, Path], model: Path, tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match="no model at absent"):
        bertkit.finetune(texts["few"], model=model, output=tmp_path / "run", teacher="absent", **QUICK)
