from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import bertkit
from bertkit.encoders import bert, gpt
from bertkit.encoders.bert import Bert
from bertkit.errors import BertkitError
from bertkit.inference.onnx_model import OnnxModel, write_onnx
from bertkit.model import Model
from bertkit.objectives.crf_tagging import CrfTagging

for name in ("onnx", "onnxscript", "onnxruntime"):
    pytest.importorskip(name, reason="install bertkit[onnx]")

SOURCE = Path(bertkit.__file__).parents[1]


def test_outputs_of_every_head_are_those_of_pytorch(tmp_path: Path) -> None:
    program = Path(__file__).with_name("onnx_parity.py")
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, program, tmp_path], capture_output=True, text=True, env=environment, timeout=900
    )
    assert done.returncode == 0, done.stderr[-2000:]
    differences = json.loads(done.stdout.splitlines()[-1])
    refusal, rounding = differences.pop("another model"), differences.pop("int8")
    assert len(differences) == 4
    assert all(each <= 1e-5 for each in differences.values()), differences
    assert 1e-5 < rounding < 0.5
    assert "several.onnx is of another model: its outputs are labels_logits, number_value" in refusal


def test_what_has_no_onnx_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match="BERT and RoBERTa with attention in both directions"):
        write_onnx(Model(gpt.tiny(), {}), tmp_path / "model.onnx")
    with pytest.raises(BertkitError, match="without a BiLSTM"):
        write_onnx(Model(Bert(replace(bert.tiny().config, lstm_layers=1)), {}), tmp_path / "model.onnx")
    encoder = bert.tiny()
    with pytest.raises(BertkitError, match="the model has a CRF, which has no ONNX form"):
        write_onnx(Model(encoder, {"tags": CrfTagging(encoder.hidden_size, ("O", "B-X", "I-X"))}), tmp_path / "x.onnx")
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_not_onnx_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.onnx").write_text("not a protocol buffer")
    with pytest.raises(BertkitError, match="is not an ONNX file that onnxruntime reads"):
        OnnxModel(tmp_path / "text.onnx", Model(bert.tiny(), {}))


def test_a_missing_package_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(module: str) -> Any:
        raise ModuleNotFoundError(module)

    monkeypatch.setattr("bertkit.optional.load", load)
    with pytest.raises(BertkitError, match=r"--to onnx needs onnx: pip install 'bertkit\[onnx\]'"):
        write_onnx(Model(bert.tiny(), {}), tmp_path / "model.onnx")
