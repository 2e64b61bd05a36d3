"""What ``bench inference`` compares: bertkit and other libraries as functions from texts to vectors.

Every system tokenizes, sorts by length, computes, and pools the tokens of a text. All of them read the same tokens, and
pool them in the same way: as the model was trained to make vectors, else the mean of as many as it has positions for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.inference.conversion import load_whole_model
from bertkit.inference.encoder_pipeline import EncoderPipeline
from bertkit.inference.onnx_model import HIDDEN_STATES, quantize_onnx, write_onnx
from bertkit.inference.pipeline import load
from bertkit.inference.runtime import ResolvedPrecision
from bertkit.machine.precision import Precision
from bertkit.model import Model
from bertkit.nn.text_pooling import pool_states
from bertkit.optional import require
from bertkit.options.speed import InferencePeer
from bertkit.speed.rounds import EXTRA, fastest_of

Embed = Callable[[Sequence[str]], Any]
"""Texts to vectors (N, H)."""

EmbedMaker = Callable[[], Embed]
"""Loads a system; picklable."""

_BATCH = 32
_SMALL_BATCH = 8


def own_systems(folder: Path, formats: Sequence[Precision]) -> Iterator[tuple[str, EmbedMaker]]:
    """bertkit in each of ``formats``, and in int8."""
    precisions: tuple[ResolvedPrecision, ...] = (*formats, "int8")
    for precision in precisions:
        yield f"bertkit {precision}", partial(_load_own, folder, precision)


def peer_systems(
    folder: Path, formats: Sequence[Precision], temporary: Path, peer: InferencePeer
) -> Iterator[tuple[str, EmbedMaker]]:
    """The systems of another library, by name; a usage error if it is not installed."""
    purpose = f"--against {peer}"
    if peer == "hf":
        require("transformers", extra=EXTRA, purpose=purpose)
        for name in formats:
            yield f"Hugging Face {name}", partial(_load_hugging_face, folder, name)
    elif peer == "st":
        require("sentence_transformers", extra=EXTRA, purpose=purpose, library="sentence-transformers")
        yield "sentence-transformers float32", partial(_load_sentence_transformers, folder)
    elif peer == "ort":
        require("onnxruntime", extra=EXTRA, purpose=purpose)
        exact = _onnx_file(folder, temporary)
        rounded = temporary / "int8.onnx"
        quantize_onnx(exact, rounded)
        yield "ONNX Runtime float32", partial(_load_onnx_runtime, folder, exact, _BATCH)
        for size in (_BATCH, _SMALL_BATCH):
            yield f"ONNX Runtime int8, batches of {size}", partial(_load_onnx_runtime, folder, rounded, size)
    else:
        require("openvino", extra=EXTRA, purpose=purpose)
        fastest = fastest_of(formats)
        yield f"OpenVINO {fastest}", partial(_load_openvino, folder, _onnx_file(folder, temporary), fastest)


def _load_own(folder: Path, precision: ResolvedPrecision) -> Embed:
    return load(folder, precision=precision, device="cpu").embed


def in_batches(run: Callable[[Any, Any], Any], model: EncoderPipeline, size: int) -> Embed:
    """Batches of similar length, padded to their longest text; ``run`` maps ids and mask (B, T) to states (B, T, H).

    Texts are tokenized and cut as ``model`` reads them, and their states pooled as it pools them.
    """
    tokenizer, longest, pool = model.tokenizer, model.max_length, model.embedding.pool

    def embed(texts: Sequence[str]) -> Any:
        encoded = tokenizer.encode_batch(list(texts))
        ids = [[tokenizer.start_id, *each.ids[: longest - 2], tokenizer.end_id] for each in encoded]
        order = sorted(range(len(ids)), key=lambda place: -len(ids[place]))
        vectors: list[Any] = [None] * len(ids)
        for start in range(0, len(order), size):
            places = order[start : start + size]
            tokens = np.zeros((len(places), len(ids[places[0]])), dtype=np.int64)
            mask = np.zeros_like(tokens)
            for row, place in enumerate(places):
                tokens[row, : len(ids[place])], mask[row, : len(ids[place])] = ids[place], 1
            states = torch.from_numpy(run(tokens, mask))
            pooled = pool_states(states, torch.from_numpy(mask) != 0, pool).numpy()
            for row, place in enumerate(places):
                vectors[place] = pooled[row]
        return np.stack(vectors)

    return embed


def _onnx_file(folder: Path, temporary: Path) -> Path:
    file = temporary / "float32.onnx"
    if not file.exists():
        write_onnx(Model(load_whole_model(ModelFolder.open(folder)).encoder, {}).eval(), file)
    return file


def _load_hugging_face(folder: Path, precision: Precision) -> Embed:
    transformers = require("transformers", extra=EXTRA, purpose="--against hf")
    model = transformers.AutoModel.from_pretrained(folder, dtype=getattr(torch, precision)).eval()

    @torch.inference_mode()
    def run(tokens: Any, mask: Any) -> Any:
        output = model(input_ids=torch.from_numpy(tokens), attention_mask=torch.from_numpy(mask))
        return output.last_hidden_state.float().numpy()

    return in_batches(run, load(folder), _BATCH)


def _load_onnx_runtime(folder: Path, file: Path, size: int) -> Embed:
    runtime = require("onnxruntime", extra=EXTRA, purpose="--against ort")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])

    names = [each.name for each in session.get_inputs()]

    def run(tokens: Any, mask: Any) -> Any:
        arrays = (tokens, mask, np.zeros_like(tokens))[: len(names)]
        return session.run([HIDDEN_STATES], dict(zip(names, arrays, strict=True)))[0]

    return in_batches(run, load(folder), size)


def _load_openvino(folder: Path, file: Path, precision: Precision) -> Embed:
    openvino = require("openvino", extra=EXTRA, purpose="--against openvino")
    core = openvino.Core()
    settings = {
        "INFERENCE_PRECISION_HINT": {"float32": "f32", "bfloat16": "bf16"}[precision],
        "INFERENCE_NUM_THREADS": torch.get_num_threads(),
        "PERFORMANCE_HINT": "LATENCY",
    }
    network = core.read_model(file)
    request = core.compile_model(network, "CPU", settings).create_infer_request()

    def run(tokens: Any, mask: Any) -> Any:
        return request.infer([tokens, mask, np.zeros_like(tokens)][: len(network.inputs)])[0]

    return in_batches(run, load(folder), _BATCH)


def _load_sentence_transformers(folder: Path) -> Embed:
    library = require("sentence_transformers", extra=EXTRA, purpose="--against st", library="sentence-transformers")
    model = library.SentenceTransformer(str(folder), device="cpu")
    return lambda texts: model.encode(list(texts), batch_size=_BATCH, show_progress_bar=False)
