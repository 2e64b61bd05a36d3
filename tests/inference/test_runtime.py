from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from bertkit.batch import Batch
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import save_model
from bertkit.checkpoint.weights import WEIGHTS
from bertkit.encoder_types.transformer import Transformer
from bertkit.encoders import gpt, modernbert
from bertkit.encoders.bert import Bert
from bertkit.errors import BertkitError, DivergenceError
from bertkit.inference import runtime as runtimes
from bertkit.inference.backend_cache import BackendCache
from bertkit.inference.ensemble import Ensemble
from bertkit.inference.pipeline import load
from bertkit.inference.predict import predict
from bertkit.inference.runtime import BACKENDS, Runtime, possible_backends
from bertkit.kernels import fused
from bertkit.model import Model
from bertkit.nn.inference_stack import InferenceStack
from bertkit.options.job import InferencePrecision
from bertkit.storage.atomic import read_object
from bertkit.task_types import TextClassificationTask, TextExample
from bertkit.text.wordpiece import WordPiece

CPU = torch.device("cpu")
ALL = [Runtime(precision, backend) for precision in BACKENDS for backend in possible_backends(precision)]
TOLERANCES = {"float32": 1e-5, "bfloat16": 0.1, "int8": 0.2}
COSINES = {"float32": 0.99999, "bfloat16": 0.9995, "int8": 0.99}


@pytest.fixture
def cache(tmp_path: Path) -> BackendCache:
    return BackendCache(tmp_path / "cache" / "backends.json")


@pytest.mark.parametrize("runtime", ALL, ids=lambda each: each.name)
def test_predictions_are_those_of_training(
    runtime: Runtime,
    model: Model,
    task: TextClassificationTask,
    examples: list[TextExample],
    tokenizer: WordPiece,
) -> None:
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    prepared = runtime.prepare(model)
    exact = predict(model, task, examples, tokenizer)
    found = predict(prepared, task, examples, tokenizer)
    for one, other in zip(found, exact, strict=True):
        assert list(one.scores.values()) == pytest.approx(
            list(other.scores.values()), abs=TOLERANCES[runtime.precision]
        )
    alone = [predict(prepared, task, [each], tokenizer)[0] for each in examples]
    for one, other in zip(found, alone, strict=True):  # the batch makes less difference than the precision
        assert list(one.scores.values()) == pytest.approx(
            list(other.scores.values()), abs=TOLERANCES[runtime.precision]
        )
    assert [each.scores for each in alone] == [
        predict(prepared, task, [each], tokenizer, batch_size=1)[0].scores for each in examples
    ]
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("runtime", ALL, ids=lambda each: each.name)
def test_vectors_of_real_weights_point_in_the_same_direction(runtime: Runtime, minilm: Path) -> None:
    texts = ["A film to see twice.", "it is a dull , endless mess", "Rivers ran past the mill. " * 9, "No"]
    exact = load(minilm, precision="float32").embed(texts, normalize=True)
    pipeline = load(minilm)
    pipeline.__dict__["runtime"] = runtime
    cosines = (pipeline.embed(texts, normalize=True) * exact).sum(axis=1)
    assert cosines.min() > COSINES[runtime.precision]


def test_dropout_does_not_change_the_ranges_of_8_bit_integers(
    tmp_path: Path, model: Model, tokenizer: WordPiece
) -> None:
    save_model(tmp_path, model, tokenizer, metadata={})
    texts = ["a river", "the old mill"]
    first, second = (load(tmp_path, precision="int8").embed(texts) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_members_of_an_ensemble_are_all_prepared(model: Model, padded_batch: Batch) -> None:
    model.eval()
    prepared = Runtime("bfloat16", "PyTorch").prepare(Ensemble([model, copy.deepcopy(model)]))
    assert sum(isinstance(each, InferenceStack) for each in prepared.modules()) == 2
    batch = replace(padded_batch, input_ids=padded_batch.input_ids % 50, segment_ids=padded_batch.segment_ids * 0)
    assert prepared(batch)["class"]["logits"].dtype == torch.float32


def test_a_precision_is_never_changed_by_the_stopwatch(
    encoder: Bert, cache: BackendCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtimes, "can_pack", lambda dtype: True)  # whatever the processor
    slow = {"oneDNN": 1.0, "PyTorch": 2.0, "AMX": 3.0, "compiled": 4.0}
    monkeypatch.setattr(runtimes, "measure", lambda _, found: {each: slow[each.backend] for each in found})
    for precision in ("float32", "bfloat16"):
        assert Runtime.choose([encoder], precision, CPU, cache=cache) == Runtime(precision, "oneDNN")
    assert Runtime.choose([encoder], "int8", CPU, cache=cache) == Runtime("int8", "oneDNN")


def test_auto_is_the_fastest_of_all_precisions_and_is_measured_once(
    encoder: Bert, cache: BackendCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[Runtime] = []

    def measure(_: Bert, found: list[Runtime]) -> dict[Runtime, float]:
        measured.extend(found)
        return {each: float(each != Runtime("bfloat16", "PyTorch")) for each in measured}

    monkeypatch.setattr(runtimes, "measure", measure)
    for _ in range(2):
        assert Runtime.choose([encoder], "auto", CPU, cache=cache) == Runtime("bfloat16", "PyTorch")
    assert measured == ALL
    (measurements,) = read_object(cache.file).values()
    (key,) = measurements
    cache.remember(key, "float64 abacus")  # of another version, which knew other backends
    assert Runtime.choose([encoder], "auto", CPU, cache=cache) == Runtime("bfloat16", "PyTorch")
    assert len(measured) == 2 * len(ALL)


def test_every_backend_is_measured(encoder: Bert) -> None:
    with torch.device("meta"):
        sketch = Bert(encoder.config)
    seconds = runtimes.measure(sketch, ALL)
    assert list(seconds) == ALL
    assert all(0 < each < math.inf for each in seconds.values())


@pytest.mark.parametrize("tiny", [gpt.tiny, modernbert.tiny])
def test_other_encoders_run_as_in_training(tiny: Callable[[], Transformer], cache: BackendCache) -> None:
    encoder = tiny()
    runtime = Runtime.choose([encoder], "bfloat16", CPU, cache=cache)
    assert (runtime.backend, runtime.autocast_precision, runtime.name) == (None, "bfloat16", "bfloat16")
    assert runtime.prepare(encoder) is encoder
    with pytest.raises(BertkitError, match="precision int8 is for BERT and RoBERTa on a CPU: use float32 or bfloat16"):
        Runtime.choose([encoder], "int8", CPU, cache=cache)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
def test_a_pytorch_without_onednn_and_a_compiler_has_one_backend(
    precision: InferencePrecision, encoder: Bert, cache: BackendCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtimes, "can_pack", lambda dtype: False)
    monkeypatch.setattr(fused, "_library", lambda: None)
    if precision == "int8":
        with pytest.raises(BertkitError, match="int8 needs a C compiler"):
            Runtime.choose([encoder], precision, CPU, cache=cache)
    else:
        found = Runtime.choose([encoder], precision, CPU, cache=cache)
        assert (found.precision, found.backend) == (precision, "PyTorch")


@pytest.mark.parametrize("runtime", ALL, ids=lambda each: each.name)
def test_weights_that_are_not_finite_are_refused(
    runtime: Runtime, model: Model, task: TextClassificationTask, examples: list[TextExample], tokenizer: WordPiece
) -> None:
    with torch.no_grad():
        model.get_parameter("encoder.layers.0.feed_forward.inner.weight")[3, 5] = float("nan")
    with pytest.raises(DivergenceError, match="not finite"):
        predict(runtime.prepare(model), task, examples, tokenizer)


@pytest.mark.parametrize("runtime", ALL, ids=lambda each: each.name)
def test_a_prepared_model_does_not_need_the_file_of_its_weights(
    runtime: Runtime, model: Model, task: TextClassificationTask, examples: list[TextExample], tokenizer: WordPiece,
    tmp_path: Path,
) -> None:  # fmt: skip
    save_model(tmp_path / "model", model, tokenizer, metadata={})
    folder = ModelFolder.open(tmp_path / "model")
    mapped = folder.load_model(task.objectives, mapped=True)
    owned = folder.load_model(task.objectives)
    prepared = runtime.prepare(mapped)
    expected = predict(prepared, task, examples, tokenizer)
    weights = tmp_path / "model" / WEIGHTS
    with weights.open("r+b") as file:  # the same file, as "cp" over it would leave it
        file.write(bytes(weights.stat().st_size))
    assert not mapped.get_parameter("encoder.embeddings.word.weight").any()
    assert predict(prepared, task, examples, tokenizer) == expected
    assert torch.equal(
        owned.get_parameter("encoder.embeddings.word.weight"), model.get_parameter("encoder.embeddings.word.weight")
    )
