from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.tiny_bert import make_encoder, make_tokenizer

import bertkit
from bertkit.batch import Batch, Outputs
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import save_model
from bertkit.contracts import Example
from bertkit.errors import BertkitError
from bertkit.evaluation import onnx_export
from bertkit.evaluation.evaluate import LabelledSplit, read_split
from bertkit.evaluation.onnx_export import FILE, OnnxCheck, check_onnx, export_onnx
from bertkit.inference.conversion import load_whole_model
from bertkit.model import Model
from bertkit.task_files.files import Columns, Split, TaskFiles
from bertkit.task_types import from_record
from bertkit.task_types.similarity import SimilarityTask

FOUND = OnnxCheck(7, "accuracy", 0.75, 0.74, 2e-4, 0.5, 100.0, 150.0)


class Shifted(torch.nn.Module):
    """A model whose outputs are larger by 0.25."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Batch) -> dict[str, Outputs]:
        found = self.model(batch)
        return {name: {each: value + 0.25 for each, value in outputs.items()} for name, outputs in found.items()}


def test_the_comparison_finds_the_largest_difference(workspace: Path) -> None:
    folder = ModelFolder.open(workspace / "tuned")
    model = load_whole_model(folder).eval()
    task = from_record(folder.metadata["task"])
    shifted = Shifted(model)
    found = check_onnx(model, shifted, read_split(task, workspace / "reviews.csv", "dev"), folder.tokenizer)
    assert found.difference == pytest.approx(0.25, abs=1e-5)
    assert found.before == found.after > 0
    assert 0 < found.largest < 5
    assert found.examples > 5
    assert min(found.speed_before, found.speed_after) > 0


def test_a_difference_or_a_loss_is_refused() -> None:
    onnx_export.judge(FOUND, int8=False)
    onnx_export.judge(replace(FOUND, difference=9.0), int8=True)
    with pytest.raises(BertkitError, match=r"they differ by 0\.0011, which is more than 0\.001"):
        onnx_export.judge(replace(FOUND, difference=1.1e-3), int8=False)
    with pytest.raises(BertkitError, match="differ by nan"):
        onnx_export.judge(replace(FOUND, difference=float("nan")), int8=False)
    with pytest.raises(BertkitError, match=r"--int8 lowers accuracy from 0\.7500 to 0\.7390"):
        onnx_export.judge(replace(FOUND, after=0.739), int8=True)
    with pytest.raises(BertkitError, match=r"--int8 lowers accuracy from 0\.7500 to undefined"):
        onnx_export.judge(replace(FOUND, after=float("nan")), int8=True)


def test_of_an_error_a_larger_one_is_the_loss() -> None:
    prices = replace(FOUND, metric="mean_absolute_error", before=800.0, after=700.0)
    onnx_export.judge(prices, int8=True)
    onnx_export.judge(replace(prices, after=807.0), int8=True)
    with pytest.raises(BertkitError, match=r"raises mean_absolute_error from 800\.0000 to 809\.0000, by more than 1%"):
        onnx_export.judge(replace(prices, after=809.0), int8=True)
    with pytest.raises(BertkitError, match="by more than 1%"):
        onnx_export.judge(replace(prices, before=8e-10, after=9e-10), int8=True)


def test_a_difference_is_judged_by_the_size_of_the_outputs() -> None:
    prices = replace(FOUND, difference=16.0, largest=2.5e8)
    onnx_export.judge(prices, int8=False)
    with pytest.raises(BertkitError, match=r"they differ by 16, which is more than 2\.5\."):
        onnx_export.judge(replace(prices, largest=2.5e3), int8=False)


def test_the_folder_has_the_file_beside_the_model(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_export, "write_onnx", lambda model, path, embedding: path.write_bytes(b"a file"))
    found = export_onnx(ModelFolder.open(workspace / "tuned"), tmp_path / "out")
    assert (tmp_path / "out" / FILE).read_bytes() == b"a file"
    assert (tmp_path / "out" / "model.safetensors").is_file()
    assert f"{FILE}: 0.0 MiB" in found.notes


def test_a_model_without_a_task_cannot_be_checked(workspace: Path, tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match="--check needs a model with a task"):
        export_onnx(ModelFolder.open(workspace / "run"), tmp_path / "out", check=workspace / "reviews.csv")
    assert not (tmp_path / "out").exists()


def test_the_task_of_a_folder_of_another_library_is_known(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hf = pytest.importorskip("transformers")
    tokenizer = bertkit.load(workspace / "tuned").tokenizer
    shape = {"hidden_size": 14, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 37}
    config = hf.BertConfig(vocab_size=tokenizer.vocab_size, num_labels=2, max_position_embeddings=41, **shape)
    hf.BertForSequenceClassification(config).save_pretrained(tmp_path / "hf")
    tokenizer.save(tmp_path / "hf")
    (tmp_path / "t.csv").write_text("text,label\n" + "a river,LABEL_0\na wide stone,LABEL_1\n" * 7)
    compared: list[Example] = []

    def check(model: Model, onnx: object, labelled: LabelledSplit, tokenizer: object) -> OnnxCheck:
        compared.extend(labelled.examples)
        return FOUND

    monkeypatch.setattr(onnx_export, "write_onnx", lambda model, path, embedding: path.write_bytes(b"a file"))
    monkeypatch.setattr(onnx_export, "OnnxModel", lambda path, model: None)
    monkeypatch.setattr(onnx_export, "check_onnx", check)
    export_onnx(ModelFolder.open(tmp_path / "hf"), tmp_path / "out", check=tmp_path / "t.csv")
    assert [each.label for each in compared] == ["LABEL_0", "LABEL_1"] * 7


def test_a_file_that_cannot_be_compared_is_refused_before_the_export(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_export, "load_whole_model", lambda folder: pytest.fail("the model is loaded"))
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(BertkitError, match=r"other\.csv has no column"):
        export_onnx(ModelFolder.open(workspace / "tuned"), tmp_path / "out", check=tmp_path / "other.csv")


def test_a_model_of_embeddings_is_compared_by_its_cosines(tmp_path: Path) -> None:
    for name in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(name, reason="install bertkit[onnx]")
    tokenizer = make_tokenizer()
    split = Split(files=("train.csv",), columns=Columns(first="first", second="second", label="score"))
    task = SimilarityTask(name="pairs", pooling="cls", max_length=33, files=TaskFiles(splits={"train": split}))
    encoder = make_encoder(tokenizer)
    model = Model(encoder, task.objectives(encoder))
    save_model(tmp_path / "model", model, tokenizer, metadata={"task": task.record()})
    rows = "".join(f"the mill,{'the river ' * count},0.{count}\n" for count in range(1, 9))
    (tmp_path / "dev.csv").write_text(f"first,second,score\n{rows}")
    # In a process of its own: the exporter cannot follow functions whose shapes are checked.
    words = ["export", "model", "--to", "onnx", "-o", "out", "--check", "dev.csv"]
    environment = {**os.environ, "PYTHONPATH": str(Path(bertkit.__file__).parents[1])}
    command = [sys.executable, "-m", "bertkit", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, timeout=300)
    assert "8 examples: spearman" in done.stdout, done.stderr


def test_the_comparison_is_shown() -> None:
    assert FOUND.lines()[0] == "7 examples: accuracy 0.7500 with PyTorch, 0.7400 with the ONNX file"


def test_a_folder_is_replaced_with_its_file_or_not_at_all(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_export, "write_onnx", lambda model, path, embedding: path.write_bytes(b"a file"))
    export_onnx(ModelFolder.open(workspace / "tuned"), tmp_path / "out")

    def crash(source: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "copyfile", crash)
    monkeypatch.setattr(onnx_export, "write_onnx", lambda model, path, embedding: path.write_bytes(b"another"))
    with pytest.raises(KeyboardInterrupt):
        export_onnx(ModelFolder.open(workspace / "tuned"), tmp_path / "out")
    assert (tmp_path / "out" / FILE).read_bytes() == b"a file"
    assert (tmp_path / "out" / "model.safetensors").is_file()
