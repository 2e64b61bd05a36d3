from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.tiny_runs import WORDS

from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.errors import BertkitError
from bertkit.finetuning.data import FinetuningData, check_lengths, load_data
from bertkit.finetuning.record import FinetuneRun
from bertkit.report.progress import Progress
from bertkit.task_types import TextClassificationTask
from bertkit.tasks.glue import sst2
from bertkit.user_tables.guess import guess

Build = Callable[..., FinetuneRun]


@pytest.fixture
def build(model: Path, tmp_path: Path) -> Build:
    """A function that makes the run of a task with 13 training and 7 dev examples of 5 words."""

    def build_run(task: TextClassificationTask = sst2, **settings: object) -> FinetuneRun:
        (tmp_path / "run").mkdir(exist_ok=True)
        for name, count in (("train", 13), ("dev", 7)):
            rows = [f"{' '.join(WORDS[row % 6 : row % 6 + 5])}\t{row % 2}\n" for row in range(count)]
            (tmp_path / f"{name}.tsv").write_text("sentence\tlabel\n" + "".join(rows))
        return FinetuneRun(task=task.at(tmp_path), model=model, output=tmp_path / "run", **settings)  # type: ignore[arg-type]

    return build_run


def load(run: FinetuneRun, earlier: FinetuningData | None = None) -> FinetuningData:
    return load_data(run, Progress("quiet"), earlier)


def test_examples_are_read_and_encoded(build: Build, capsys: pytest.CaptureFixture[str]) -> None:
    data = load_data(build(), Progress("plain"))
    assert (data.num_examples, len(data.train), len(data.dev)) == (13, 13, 7)
    assert data.extra_dev == {}
    assert data.tokenizer.fingerprint == data.model_folder.tokenizer.fingerprint
    assert "13 training and 7 dev examples, 15 tokens at the median, 15 at most" in capsys.readouterr().err


def test_limits_take_the_first_examples(build: Build) -> None:
    data = load(build(limit=5, dev_limit=3))
    everything = load(build())
    assert (data.num_examples, len(data.dev)) == (5, 3)
    assert list(data.dev) == list(everything.dev)[:3]


def test_text_that_the_vocabulary_does_not_have_is_reported(build: Build, capsys: pytest.CaptureFixture[str]) -> None:
    run = build()
    load_data(run, Progress("plain"))
    assert "unknown" not in capsys.readouterr().err
    rows = "sentence\tlabel\n대사 하나하나가 위트\t0\n굿 그리고\t1\n"
    (run.output.parent / "train.tsv").write_text(rows, encoding="utf-8")
    load_data(run, Progress("plain"))
    assert (
        "on average 100% of the tokens of a training row are unknown to the vocabulary of " in capsys.readouterr().err
    )


def test_texts_of_one_long_word_are_unknown(build: Build, capsys: pytest.CaptureFixture[str]) -> None:
    """Such as DNA without spaces: one token of hundreds of letters, beside texts of many tokens."""
    run = build()
    rows = [f"{'acgt' * 99}\t{n % 2}\n" for n in range(4)] + [
        f"{'seven wide rivers ' * 14}\t{n % 2}\n" for n in range(4)
    ]
    (run.output.parent / "train.tsv").write_text("sentence\tlabel\n" + "".join(rows), encoding="utf-8")
    load_data(run, Progress("plain"))
    assert "on average 50% of the tokens of a training row are unknown" in capsys.readouterr().err


def test_a_limit_that_leaves_one_class_is_reported(build: Build, capsys: pytest.CaptureFixture[str]) -> None:
    for limit in (1, 2):
        load_data(build(limit=limit), Progress("plain"))
        one_class = 'nothing to learn in the first 1 training example, which has only the class "negative"'
        assert (one_class in capsys.readouterr().err) == (limit == 1)


def test_a_limit_that_leaves_out_a_class_is_reported(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [("good", 6), ("bad", 6), ("odd", 6)]
    lines = [f"{label} film {row},{label}\n" for label, count in rows for row in range(count)]
    (tmp_path / "t.csv").write_text("text,label\n" + "".join(lines))
    task = guess(tmp_path / "t.csv", dev=tmp_path / "t.csv").task
    load_data(FinetuneRun(task=task, model=model, output=tmp_path / "out", limit=10, baseline=False), Progress("plain"))
    assert "the first 10 training examples have none of the class odd: shuffle the file" in capsys.readouterr().err


def test_truncation_is_reported(build: Build, capsys: pytest.CaptureFixture[str]) -> None:
    load_data(build(replace(sst2, max_length=5)), Progress("plain"))
    assert "13 of 13 training examples were cut to 5 tokens; 66.0% of the tokens are lost" in capsys.readouterr().err


def test_a_length_beyond_the_positions_of_the_model_is_refused(build: Build) -> None:
    folder = ModelFolder.open(build().model)
    check_lengths(build(replace(sst2, max_length=37)), folder)
    run = build(replace(sst2, max_length=38))
    with pytest.raises(BertkitError, match=r"task.max_length is 38; .* reads 37 tokens at most.*max_length=37"):
        check_lengths(run, folder)


def test_a_task_without_labelled_examples_is_refused(build: Build) -> None:
    run = build()
    (Path(str(run.task.files.folder)) / "train.tsv").write_text("sentence\tlabel\n")
    with pytest.raises(BertkitError, match=r"glue:sst2 has 0 training and 7 dev examples with a label"):
        load(run)


def test_data_fits_runs_that_encode_the_same_examples(build: Build) -> None:
    run = build()
    data = load(run)
    for same in (replace(run, batch_size=7), replace(run, epochs=2, output=Path("other")), replace(run, seeds=3)):
        assert data.fits(same)
        assert data.for_run(same).run == same
        assert data.for_run(same).train is data.train
    for other in (
        build(limit=5),
        build(replace(sst2, max_length=9)),
        replace(run, lm_loss_weight=0.5),
        replace(run, baseline=False),
    ):
        assert not data.fits(other)


def test_the_model_and_cached_activations_of_earlier_data_are_used_again(build: Build, tmp_path: Path) -> None:
    data = load(build())
    again = load(build(replace(sst2, max_length=9)), data)
    assert again.activations is data.activations
    assert again.model_folder is data.model_folder
    assert load(build()).activations is not data.activations
