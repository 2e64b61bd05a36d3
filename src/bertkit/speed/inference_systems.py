"""What ``bench inference`` compares: bertkit and other libraries as functions from texts to vectors.

Every system tokenizes, sorts by length, computes, and takes the mean over the tokens of a text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch

from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.inference.conversion import load_whole_model
from bertkit.inference.onnx_model import HIDDEN_STATES, INPUTS, quantize_onnx, write_onnx
from bertkit.inference.pipeline import load
from bertkit.inference.runtime import ResolvedPrecision
from bertkit.model import Model
from bertkit.optional import require
from bertkit.options.speed import InferencePeer
from bertkit.speed.rounds import EXTRA

Embed = Callable[[Sequence[str]], Any]
"""Texts to vectors (N, H)."""

_BATCH = 32
_SMALL_BATCH = 8


def own_systems(folder: Path) -> Iterator[tuple[str, Embed]]:
    """bertkit in each precision."""
    for precision in get_args(ResolvedPrecision):
        pipeline = load(folder, precision=precision)
        yield f"bertkit {pipeline.runtime.name}", pipeline.embed


def peer_systems(peer: InferencePeer, folder: Path, temporary: Path) -> Iterator[tuple[str, Embed]]:
    """The systems of another library, by name; a usage error if it is not installed."""
    tokenize = partial(_tokenize, ModelFolder.open(folder))
    if peer == "hf":
        for name in ("float32", "bfloat16"):
            yield f"Hugging Face {name}", in_batches(_hugging_face(folder, getattr(torch, name)), tokenize, _BATCH)
    elif peer == "st":
        yield "sentence-transformers float32", _sentence_transformers(folder)
    elif peer == "ort":
        exact = _onnx_file(folder, temporary)
        rounded = temporary / "int8.onnx"
        quantize_onnx(exact, rounded)
        yield "ONNX Runtime float32", in_batches(_onnx_runtime(exact), tokenize, _BATCH)
        for size in (_BATCH, _SMALL_BATCH):
            yield f"ONNX Runtime int8, batches of {size}", in_batches(_onnx_runtime(rounded), tokenize, size)
    else:
        yield "OpenVINO bfloat16", in_batches(_openvino(_onnx_file(folder, temporary)), tokenize, _BATCH)


def in_batches(run: Callable[[Any, Any], Any], tokenize: Callable[[Sequence[str]], list[Any]], size: int) -> Embed:
    """Batches of similar length, padded to their longest text; ``run`` maps ids and mask (B, T) to states (B, T, H)."""

    def embed(texts: Sequence[str]) -> Any:
        ids = tokenize(texts)
        order = sorted(range(len(ids)), key=lambda place: -len(ids[place]))
        vectors: list[Any] = [None] * len(ids)
        for start in range(0, len(order), size):
            places = order[start : start + size]
            tokens = np.zeros((len(places), len(ids[places[0]])), dtype=np.int64)
            mask = np.zeros_like(tokens)
            for row, place in enumerate(places):
                tokens[row, : len(ids[place])], mask[row, : len(ids[place])] = ids[place], 1
            pooled = (run(tokens, mask) * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
            for row, place in enumerate(places):
                vectors[place] = pooled[row]
        return np.stack(vectors)

    return embed


def _tokenize(folder: ModelFolder, texts: Sequence[str]) -> list[Any]:
    longest = folder.positions or 512
    start, end = folder.tokenizer.start_id, folder.tokenizer.end_id
    return [[start, *each.ids[: longest - 2], end] for each in folder.tokenizer.encode_batch(list(texts))]


def _onnx_file(folder: Path, temporary: Path) -> Path:
    file = temporary / "float32.onnx"
    if not file.exists():
        write_onnx(Model(load_whole_model(ModelFolder.open(folder)).encoder, {}).eval(), file)
    return file


def _hugging_face(folder: Path, dtype: torch.dtype) -> Callable[[Any, Any], Any]:
    transformers = require("transformers", extra=EXTRA, purpose="--against hf")
    model = transformers.AutoModel.from_pretrained(folder, dtype=dtype).eval()

    @torch.inference_mode()
    def run(tokens: Any, mask: Any) -> Any:
        output = model(input_ids=torch.from_numpy(tokens), attention_mask=torch.from_numpy(mask))
        return output.last_hidden_state.float().numpy()

    return run


def _onnx_runtime(file: Path) -> Callable[[Any, Any], Any]:
    runtime = require("onnxruntime", extra=EXTRA, purpose="--against ort")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])

    def run(tokens: Any, mask: Any) -> Any:
        inputs = dict(zip(INPUTS, (tokens, mask, np.zeros_like(tokens)), strict=True))
        return session.run([HIDDEN_STATES], inputs)[0]

    return run


def _openvino(file: Path) -> Callable[[Any, Any], Any]:
    openvino = require("openvino", extra=EXTRA, purpose="--against openvino")
    core = openvino.Core()
    settings = {
        "INFERENCE_PRECISION_HINT": "bf16",
        "INFERENCE_NUM_THREADS": torch.get_num_threads(),
        "PERFORMANCE_HINT": "LATENCY",
    }
    request = core.compile_model(core.read_model(file), "CPU", settings).create_infer_request()
    return lambda tokens, mask: request.infer([tokens, mask, np.zeros_like(tokens)])[0]


def _sentence_transformers(folder: Path) -> Embed:
    library = require("sentence_transformers", extra=EXTRA, purpose="--against st", library="sentence-transformers")
    model = library.SentenceTransformer(str(folder), device="cpu")
    return lambda texts: model.encode(list(texts), batch_size=_BATCH, show_progress_bar=False)
