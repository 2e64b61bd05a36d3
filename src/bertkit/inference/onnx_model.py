"""Models as ONNX files: BERT and RoBERTa with every head, in float32 or in 8-bit integers, and their outputs again.

Inputs are ``input_ids``, ``attention_mask`` and, where there are segments, ``token_type_ids`` (B, T), or (B, C, T) for
C choices; the number of rows and their length are free. A head's outputs keep their names in bertkit; see
``output_names``.

Letters: B rows or features, T tokens, C choices, R rows.
"""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.batch import Batch, Outputs
from bertkit.checkpoint.sentence_transformers import SentenceEmbedding
from bertkit.contracts import Encoder
from bertkit.encoder_types.settings import has_lstm
from bertkit.encoder_types.transformer import Transformer
from bertkit.errors import data_error, usage_error
from bertkit.model import Model
from bertkit.nn.dense_stack import DenseStack
from bertkit.nn.inference_stack import is_supported
from bertkit.nn.text_pooling import pool_states
from bertkit.optional import require

HIDDEN_STATES, SENTENCE = "last_hidden_state", "sentence_embedding"

TOLERANCE = 1e-4
"""Largest difference between an exported file in float32 and its model, as a share of the largest output, or of 1."""

_OPSET = 18
"""onnxruntime 1.31 refuses the attention operator of opset 23 with a mask."""
_EXTRA = "onnx"
_PURPOSE = "--to onnx"
_TRACED, _OTHER = (3, 2, 7), (5, 3, 5)
"""Rows, choices and tokens of the inputs that an export traces, and of others that the file has to be right for too."""

_REFUSED = {"crf_tags": "a CRF", "word_tags": "a tagger on the layers of a frozen encoder"}
"""Heads by label that are made of more than tensor operations."""


def input_names(encoder: Encoder) -> tuple[str, ...]:
    """The inputs of the file: those that the tokenizer in Hugging Face makes, which for RoBERTa are no segment ids."""
    has_segments = getattr(encoder.config, "num_segments", 1) > 1
    return ("input_ids", "attention_mask", "token_type_ids") if has_segments else ("input_ids", "attention_mask")


def output_names(model: Model) -> dict[str, tuple[str, str]]:
    """The outputs of the file -> (objective, output) of the model.

    A single output is ``logits``, or ``value`` for a number; start and end of an answer are ``start_logits`` and
    ``end_logits``, as in Hugging Face. With several objectives the name of the objective comes first. An encoder alone
    has ``last_hidden_state``, and the vector of a text as ``sentence_embedding``.
    """
    names = {}
    for objective in model.objectives:
        outputs = ("start", "end") if objective == "span" else ("value",) if objective == "number" else ("logits",)
        for output in outputs:
            name = f"{output}_logits" if objective == "span" else output
            names[name if len(model.objectives) == 1 else f"{objective}_{name}"] = (objective, output)
    return names


class _Traced(nn.Module):
    """The model as a function of two or three tensors, with blocks that an exporter can follow."""

    def __init__(self, model: Model, embedding: SentenceEmbedding) -> None:
        super().__init__()
        self.embedding = embedding
        self.encoder = copy.deepcopy(model.encoder, {id(each): each for each in model.encoder.parameters()})
        self.encoder.layers = DenseStack(self.encoder.layers)  # type: ignore[arg-type]
        self.heads = nn.ModuleList(model.objectives.values())  # a name such as "class" is a keyword of Python
        self.outputs = list(output_names(model).values())
        self.objectives = list(model.objectives)
        self.has_choices = "choice" in model.objectives

    def forward(
        self,
        input_ids: Int[Tensor, "*B T"],
        attention_mask: Int[Tensor, "*B T"],
        token_type_ids: Int[Tensor, "*B T"] | None = None,
    ) -> tuple[Tensor, ...]:
        shape = input_ids.shape
        segments = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        inputs = (input_ids, attention_mask, segments)
        input_ids, attention_mask, segments = (each.flatten(0, 1) for each in inputs) if self.has_choices else inputs
        batch = Batch(input_ids=input_ids, segment_ids=segments, attention_mask=attention_mask.bool(), labels={})
        states = self.encoder(batch)
        if not self.objectives:
            vectors = pool_states(states.hidden_states, batch.attention_mask, self.embedding.pool)
            return states.hidden_states, F.normalize(vectors) if self.embedding.normalize else vectors
        found = {name: head(states, batch) for name, head in zip(self.objectives, self.heads, strict=True)}
        values = []
        for objective, output in self.outputs:
            value = found[objective][output]
            if objective == "mlm":
                value = value.view(*shape, -1)
            values.append(value.view(shape[:2]) if objective == "choice" else value)
        return tuple(values)


def write_onnx(model: Model, path: Path, embedding: SentenceEmbedding | None = None) -> None:
    """Write ``model`` in float32, and compare the file with it on random tokens.

    ``embedding`` says how an encoder alone makes the vector of a text; None is the mean of its tokens.

    Raises a usage error for an encoder or a head that has no ONNX form, and if the extra ``onnx`` is not installed; a
    data error if the outputs differ.
    """
    encoder = model.encoder
    if has_lstm(encoder.config) or not isinstance(encoder, Transformer) or not is_supported(encoder.layers):
        raise usage_error("--to onnx is for BERT and RoBERTa with attention in both directions, without a BiLSTM.")
    for objective in model.objectives.values():
        if objective.label in _REFUSED:
            raise usage_error(f"--to onnx: the model has {_REFUSED[str(objective.label)]}, which has no ONNX form.")
    require("onnx", extra=_EXTRA, purpose=_PURPOSE)
    require("onnxscript", extra=_EXTRA, purpose=_PURPOSE)
    require("onnxruntime", extra=_EXTRA, purpose=_PURPOSE)
    traced = _Traced(model, embedding or SentenceEmbedding()).eval()
    inputs = _random_inputs(model, traced.has_choices, _TRACED)
    rows, tokens = torch.export.Dim("rows"), torch.export.Dim("tokens", max=encoder.config.max_positions)
    axes: dict[int, Any] = {0: rows, inputs[0].dim() - 1: tokens}
    if traced.has_choices:
        axes[1] = torch.export.Dim("choices")
    with warnings.catch_warnings(), _errors_only("torch.onnx"), torch.no_grad():
        warnings.simplefilter("ignore")  # of the exporter, about its own future
        torch.onnx.export(
            traced,
            inputs,
            path,
            dynamo=True,
            opset_version=_OPSET,
            input_names=list(input_names(model.encoder)),
            output_names=list(output_names(model)) or [HIDDEN_STATES, SENTENCE],
            dynamic_shapes=(axes,) * len(inputs),
            external_data=False,
            verbose=False,
        )
    written = OnnxModel(path, model)
    for shape in (_TRACED, _OTHER):
        _compare(written, traced, _random_inputs(model, traced.has_choices, shape))


def _compare(written: OnnxModel, traced: _Traced, inputs: tuple[Tensor, ...]) -> None:
    """Raise a data error if the file and the model have different outputs for ``inputs``."""
    with torch.no_grad():
        expected = traced(*inputs)
    for one, other in zip(written.run(*(each.numpy() for each in inputs)), expected, strict=True):
        difference = float(np.abs(one - other.numpy()).max()) if one.shape == other.shape else np.inf
        if not difference <= TOLERANCE * max(1.0, float(other.abs().max())):
            raise data_error(f"the exported file computes other outputs than the model: they differ by {difference:g}.")


@contextmanager
def _errors_only(logger: str) -> Iterator[None]:
    """Without the warnings of a logger."""
    found = logging.getLogger(logger)
    level = found.level
    found.setLevel(logging.ERROR)
    try:
        yield
    finally:
        found.setLevel(level)


def quantize_onnx(source: Path, target: Path) -> None:
    """Write ``source`` with weights in 8-bit integers, one scale per output; inputs are rounded at run time."""
    quantization = require("onnxruntime.quantization", extra=_EXTRA, purpose="--int8")
    graph = require("onnx", extra=_EXTRA, purpose="--int8").load(source)
    del graph.graph.value_info[:]  # shapes that onnx infers otherwise, and then refuses
    logging.getLogger().addFilter(_is_no_advice)  # onnxruntime logs on the root logger
    try:
        quantization.quantize_dynamic(graph, target, weight_type=quantization.QuantType.QInt8, per_channel=True)
    finally:
        logging.getLogger().removeFilter(_is_no_advice)


class OnnxModel(nn.Module):
    """The outputs of an ONNX file in the form of those of ``model``, which it was made from."""

    def __init__(self, path: Path, model: Model) -> None:
        super().__init__()
        runtime = require("onnxruntime", extra=_EXTRA, purpose=_PURPOSE)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        try:
            self._session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has its own classes for each of many reasons
            raise data_error(f"{path} is not an ONNX file that onnxruntime reads: {error}.") from error
        self._inputs, self._outputs = input_names(model.encoder), output_names(model)
        expected = set(self._outputs) or {HIDDEN_STATES, SENTENCE}
        found = {each.name for each in self._session.get_outputs()}
        if found != expected or {each.name for each in self._session.get_inputs()} != set(self._inputs):
            raise data_error(f"{path} is of another model: its outputs are {', '.join(sorted(found))}.")
        self._device_marker = nn.Parameter(torch.empty(0), requires_grad=False)

    def run(self, *inputs: Any) -> list[Any]:
        """The outputs as arrays, for arrays in the order of ``input_names``."""
        return cast(list[Any], self._session.run(None, dict(zip(self._inputs, inputs, strict=True))))

    def forward(self, batch: Batch) -> dict[str, Outputs]:
        """The outputs of every objective, by its name; for an encoder alone those of ``encoder``."""
        tensors = (batch.input_ids, batch.attention_mask.long(), batch.segment_ids)
        inputs = [each.numpy() for each in tensors[: len(self._inputs)]]
        if batch.rows_per_feature is not None:
            inputs = [_as_choices(each, batch.rows_per_feature.numpy()) for each in inputs]
        values = [torch.from_numpy(each) for each in self.run(*inputs)]
        if not self._outputs:
            return {"encoder": dict(zip((HIDDEN_STATES, SENTENCE), values, strict=True))}
        outputs: dict[str, Outputs] = {}
        for (objective, output), value in zip(self._outputs.values(), values, strict=True):
            outputs.setdefault(objective, {})[output] = value
        return outputs


def _as_choices(rows: Any, choices: Any) -> Any:
    """Rows (R, T) as (B, C, T); choices that an example does not have are 0."""
    exists = np.arange(choices.max()) < choices[:, None]
    padded = np.zeros((*exists.shape, rows.shape[1]), dtype=rows.dtype)
    padded[exists] = rows
    return padded


def _random_inputs(model: Model, has_choices: bool, shape: tuple[int, int, int]) -> tuple[Tensor, ...]:
    """Random tokens of ``shape`` (rows, choices, tokens), always the same ones; the second row is shorter."""
    assert isinstance(model.encoder, Transformer)
    generator = torch.Generator().manual_seed(0)
    rows, choices, tokens = shape
    size = (rows, choices, tokens) if has_choices else (rows, tokens)
    ids = torch.randint(model.encoder.token_embedding.num_embeddings, size, generator=generator)
    mask = torch.ones(size, dtype=torch.long)
    mask[1, ..., tokens - 3 :] = 0
    return (ids, mask, torch.zeros(size, dtype=torch.long))[: len(input_names(model.encoder))]


def _is_no_advice(record: logging.LogRecord) -> bool:
    return "pre-processing before quantization" not in record.getMessage()
