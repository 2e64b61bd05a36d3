"""Options that name inputs are checked before any work."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.options.embedding import EmbedOptions
from bertkit.options.evaluation import EvaluateOptions
from bertkit.options.finetuning import FinetuneOptions
from bertkit.options.inference import PredictOptions
from bertkit.options.inputs import check_inputs, looks_like_table
from bertkit.options.job import Options
from bertkit.options.pretraining import PretrainOptions
from bertkit.options.start import DoctorOptions
from bertkit.options.text import PrepareOptions, TokenizerTrainOptions


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working folder, with a table, a text and a model."""
    monkeypatch.chdir(tmp_path)
    Path("run").mkdir()
    for name in ("r.csv", "t.txt", "run/run.json"):
        Path(name).write_text("x")


@pytest.mark.parametrize(
    "record",
    [
        FinetuneOptions("r.csv", model="run", output="new"),
        FinetuneOptions("glue:sst2", model="run", output="new", train=["r.csv"], then=Path("r.csv")),
        FinetuneOptions("run", model=Path("run"), output="new"),
        PredictOptions("run", "-", output="-"),
        EvaluateOptions("run", data="r.csv"),
        PrepareOptions(["t.txt"], tokenizer="run", output="new"),
        PrepareOptions(["t.txt"], tokenizer="run", output="s3://bucket/data"),
        PretrainOptions("run", output="new"),
        DoctorOptions(),
    ],
)
def test_inputs_that_exist_are_accepted(record: Options) -> None:
    check_inputs(record)


def test_a_saved_dataset_is_a_table() -> None:
    Path("saved").mkdir()
    Path("saved/dataset_info.json").write_text("{}")
    check_inputs(PredictOptions("run", "saved", output="p.csv"))
    check_inputs(EmbedOptions("run", "saved", output="v.npy"))


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (FinetuneOptions("q.csv", model="run", output="new"), "no file at q.csv. Did you mean r.csv?"),
        (FinetuneOptions("r.csv", model="rum", output="new"), "no model at rum. Did you mean run?"),
        (FinetuneOptions("r.csv", model="run", output="new", then="x.tsv"), "no file at x.tsv"),
        (FinetuneOptions("r.csv", model="run", output="new", dev="q.csv"), "no file or folder at q.csv"),
        (PredictOptions("rum", "r.csv", output="-"), "no model at rum"),
        (PredictOptions("run", "q.csv", output="-"), "no file at q.csv"),
        (
            PredictOptions("run", "A good film.", output="-"),
            'no file at "A good film.". A text itself is read from stdin',
        ),
        (PredictOptions("run", ".", output="-"), ". is a folder and no table: name a file in it"),
        (EmbedOptions("run", ".", output="v.npy"), ". is a folder and no table: name a file in it"),
        (PredictOptions("run", "r.csv", output="-", ensemble=["run", "rum"]), "no model at rum"),
        (EvaluateOptions("run", data="q.csv"), "no file or folder at q.csv"),
        (PrepareOptions(["t.txt", "u.txt"], tokenizer="run", output="new"), "no file at u.txt"),
        (PretrainOptions("dota", output="new"), "no data at dota"),
        (PretrainOptions(resume="rum"), "no run at rum"),
        (PretrainOptions("s3://b/data", output="new"), "s3://b/data is a URL, and a path on this machine is"),
        (FinetuneOptions("s3://b/r.csv", model="run", output="new"), "s3://b/r.csv is a URL"),
        (FinetuneOptions("r.csv", model="run", output="s3://b/new"), "s3://b/new is a URL, and this command"),
        (TokenizerTrainOptions(["t.txt"], output=Path("gs://b/t"), vocab_size=9), "gs:/b/t is a URL"),
    ],
)
def test_an_input_that_does_not_exist_is_an_error(record: Options, message: str) -> None:
    with pytest.raises(BertkitError) as caught:
        check_inputs(record)
    assert str(caught.value).startswith(message)


def test_a_folder_whose_name_looks_like_a_url_is_a_folder() -> None:
    Path("run:/data").mkdir(parents=True)
    check_inputs(PretrainOptions("run:/data", output="run:/data"))


def test_names_of_tables() -> None:
    assert looks_like_table("reviews.csv")
    assert looks_like_table("REVIEWS.CSV.GZ")
    assert not looks_like_table("my_lab.bio")
    assert not looks_like_table("glue:sst2")


@pytest.mark.parametrize("name", ["pipe.csv", "socket.csv", "null.csv"])
def test_a_pipe_a_socket_or_a_device_is_refused_before_it_is_opened(tmp_path: Path, name: str) -> None:
    """A pipe that nobody writes to would be waited for without end."""
    path = tmp_path / name
    with socket.socket(socket.AF_UNIX) as unix:
        if name == "pipe.csv":
            os.mkfifo(path)
        elif name == "socket.csv":
            unix.bind(str(path))
        else:
            path.symlink_to(os.devnull)
        with pytest.raises(BertkitError, match="is a pipe, a socket or a device, and no file"):
            check_inputs(EvaluateOptions("run", data=path))
