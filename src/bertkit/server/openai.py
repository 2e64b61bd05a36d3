"""OpenAI's embeddings, ``POST /v1/embeddings`` and ``GET /v1/models``, and infinity's ``POST /classify``."""

from __future__ import annotations

import base64
import time
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bertkit.server import abilities
from bertkit.server.call import Call
from bertkit.server.errors import malformed
from bertkit.server.huggingface import label_records
from bertkit.server.inputs import check_inputs
from bertkit.server.models import ServedModel
from bertkit.server.records import Request
from bertkit.server.token_ids import read_ids
from bertkit.task_types.probabilities import Activation

_TOKENIZER_HEADER = "x-tokenizer"
_IDS_OF_ANOTHER = (
    "`input` has token ids, and they are not of this model's vocabulary: send texts (LangChain: "
    "OpenAIEmbeddings(check_embedding_ctx_length=False)), or name the tokenizer by its fingerprint in `tokenizer`"
)


class EmbeddingsRequest(Request):
    """Texts, or token ids if ``tokenizer`` (or the header ``X-Tokenizer``) is the fingerprint of the model's.

    infinity's client always sends a ``modality``, and 0 ``dimensions`` for all; LiteLLM sends an ``encoding_format`` of
    null.
    """

    input: str | list[int | str | list[int]]
    dimensions: int | None = None
    encoding_format: Literal["float", "base64"] | None = None
    modality: Literal["text"] | None = None
    user: str | None = None
    tokenizer: str | None = None
    truncate: bool | None = None


async def embeddings(call: Call, request: EmbeddingsRequest) -> object:
    """Vectors of length 1, as numbers or as base64 of little-endian float32."""
    model = call.find_embedder(request.model)
    _check_tokenizer(call, request, model)
    limits = call.service.limits
    texts = check_inputs(await read_ids(request.input, model, limits, "input"), limits, "input")
    vectors = await abilities.embed(
        call,
        model,
        texts,
        dimensions=request.dimensions or None,
        truncate=request.truncate,
        field="input",
    )
    data = [
        {"object": "embedding", "index": number, "embedding": _write(vector, request.encoding_format)}
        for number, vector in enumerate(vectors)
    ]
    return {"object": "list", "model": model.name, "data": data, "usage": _usage(call)}


class InfinityClassifyRequest(Request):
    """Texts; ``raw_scores`` are without the model's softmax or sigmoid."""

    input: str | list[str]
    raw_scores: bool = False
    truncate: bool | None = None


async def classify(call: Call, request: InfinityClassifyRequest) -> object:
    """infinity's ``POST /classify``: the labels of each text with their scores, the best first."""
    model = call.find_model(request.model, "text-classification")
    texts = check_inputs(request.input, call.service.limits, "input")
    activation: Activation | None = "none" if request.raw_scores else None
    found = await abilities.classify(
        call, model, texts, activation=activation, truncate=request.truncate, field="input"
    )
    answer = {"object": "classify", "id": call.request_id, "model": model.name, "created": int(time.time())}
    return {**answer, "data": [label_records(each) for each in found], "usage": _usage(call)}


def _usage(call: Call) -> dict[str, int]:
    return {"prompt_tokens": call.usage.tokens, "total_tokens": call.usage.tokens}


async def models(call: Call, _: None) -> object:
    """The models that are loaded."""
    return {"object": "list", "data": [_describe(call, model) for model in call.service.models.values()]}


async def model(call: Call, _: None) -> object:
    """One model."""
    return _describe(call, call.find_model(None))


def _describe(call: Call, model: ServedModel) -> dict[str, object]:
    created = int(call.service.state.begun)
    tasks, tokenizer = list(model.tasks), model.pipeline.tokenizer.fingerprint
    base = {"id": model.name, "object": "model", "created": created, "owned_by": "bertkit"}
    lengths = {"max_input_length": model.max_length, "max_embedding_length": model.pipeline.max_length}
    return {**base, "tasks": tasks, **lengths, "tokenizer": tokenizer}


def _write(vector: NDArray[np.float32], encoding: str | None) -> object:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii") if encoding == "base64" else vector


def _check_tokenizer(call: Call, request: EmbeddingsRequest, model: ServedModel) -> None:
    """Refuse ids from a caller that does not name the model's tokenizer: tiktoken's ids would be other words."""
    if isinstance(request.input, str) or all(isinstance(each, str) for each in request.input):
        return
    if (request.tokenizer or call.headers.get(_TOKENIZER_HEADER)) != model.pipeline.tokenizer.fingerprint:
        raise malformed(_IDS_OF_ANOTHER, "input")
