"""The routes of text-embeddings-inference 1.9 (TEI)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from bertkit._version import __version__
from bertkit.contracts import SubwordTokenizer, Tokens
from bertkit.inference.texts import Text
from bertkit.server import abilities
from bertkit.server.call import Call
from bertkit.server.errors import invalid, unable
from bertkit.server.huggingface import find_path_model, label_records, read_texts
from bertkit.server.inputs import check_inputs, check_number, check_text
from bertkit.server.limits import Limits
from bertkit.server.models import ServedModel
from bertkit.server.records import EmbedRequest, Request
from bertkit.task_types.probabilities import Activation

_ANSWER_TOKENS = 200_000
"""The most tokens of an answer: 16 MB of JSON."""


class PredictRequest(Request):
    """A text, a pair as a list of two, or a list of lists of one or two texts."""

    inputs: str | list[str | list[str]]
    raw_scores: bool = False
    truncate: bool | None = None
    truncation_direction: Literal["right", "Right"] = "right"


class RerankRequest(Request):
    """A query, and texts to sort by their relevance for it."""

    query: str
    texts: list[str]
    raw_scores: bool = False
    return_text: bool = False
    truncate: bool | None = None
    truncation_direction: Literal["right", "Right"] = "right"


class TokenizeRequest(Request):
    """Texts to tokenize."""

    inputs: str | list[str]
    add_special_tokens: bool = True
    prompt_name: str | None = None


class DecodeRequest(Request):
    """Token ids, flat for one text or nested for several."""

    ids: list[int | list[int]]
    skip_special_tokens: bool = True


class SimpleToken(Struct):
    """A token as the text has it; ``start`` and ``stop`` are its characters, None for a special token."""

    id: int
    text: str
    special: bool
    start: int | None
    stop: int | None


async def predict(call: Call, request: PredictRequest) -> object:
    """The labels of one text or pair, or of each of a batch. Two texts are one pair."""
    model = call.find_model(request.model, "text-classification")
    single, texts = _read_texts(request.inputs)
    checked = check_inputs(texts, call.service.limits)
    activation: Activation | None = "none" if request.raw_scores else model.number_activation
    lists = await abilities.classify(call, model, checked, activation=activation, truncate=request.truncate)
    return label_records(lists[0]) if single else [label_records(each) for each in lists]


async def rerank(call: Call, request: RerankRequest) -> object:
    """The texts with their scores, the most relevant first."""
    model = call.find_model(request.model, "text-classification", lambda each: each.can_rerank)
    limits = call.service.limits
    query = check_text(request.query, limits, "query")
    texts = check_inputs(request.texts, limits, "texts")
    ranked = await abilities.rerank(call, model, query, texts, raw=request.raw_scores, truncate=request.truncate)
    return [
        {"index": each.place, "score": each.score} | ({"text": texts[each.place]} if request.return_text else {})
        for each in ranked
    ]


async def tokenize(call: Call, request: TokenizeRequest) -> object:
    """The tokens of each text."""
    model = call.find_model(request.model)
    prompt = model.find_prompt(request.prompt_name)
    texts = [prompt + text for text in check_inputs(request.inputs, call.service.limits)]
    return await asyncio.to_thread(_tokenize, model, texts, specials=request.add_special_tokens)


async def embed_all(call: Call, request: EmbedRequest) -> object:
    """For each text the state of every token, special tokens included, as it leaves the last layer."""
    model, texts, settings = await read_texts(call, request)
    return await abilities.embed_tokens(call, model, texts, truncate=settings.truncate)


async def embed_sparse(call: Call, request: EmbedRequest) -> object:
    """424: TEI has sparse vectors for SPLADE alone."""
    model = call.find_embedder(request.model)
    raise unable(f'the model "{model.name}" has no sparse vectors, which only SPLADE has: /embed gives dense ones')


async def decode(call: Call, request: DecodeRequest) -> object:
    """The texts of ids."""
    tokenizer = call.find_model(request.model).pipeline.tokenizer
    return await asyncio.to_thread(_decode, request, tokenizer, call.service.limits)


def _decode(request: DecodeRequest, tokenizer: SubwordTokenizer, limits: Limits) -> list[str]:
    rows = [each for each in request.ids if isinstance(each, list)]
    flat = [each for each in request.ids if isinstance(each, int)]
    check_number(rows, limits, "ids")
    if rows and flat:
        raise invalid("`ids` has both ids and lists of ids: send one list of ids, or a list of such lists", "ids")
    rows = rows or [flat]
    for row in rows:
        for id in row:
            if not 0 <= id < tokenizer.vocab_size:
                raise invalid(
                    f"`ids` has the id {id}; the vocabulary has ids from 0 to {tokenizer.vocab_size - 1}", "ids"
                )
    specials = {tokenizer.start_id, tokenizer.end_id, tokenizer.pad_id, tokenizer.unk_id, tokenizer.mask_id}
    left_out = specials if request.skip_special_tokens else set()
    return [tokenizer.decode([id for id in row if id not in left_out]) for row in rows]


async def info(call: Call, _: None) -> object:
    """What the model of the path is, or the one that answers for its task; else the first."""
    model = find_path_model(call, call.query.get("model"))
    limits = call.service.limits
    return {
        "model_id": model.name,
        "model_sha": None,
        "model_dtype": model.pipeline.precision,
        "served_model_name": model.name,
        "model_type": describe_type(model),
        "max_concurrent_requests": limits.requests,
        "max_input_length": model.max_length,
        "max_embedding_length": model.pipeline.max_length,
        "max_batch_tokens": limits.batch_tokens,
        "max_batch_requests": None,
        "max_client_batch_size": limits.inputs,
        "auto_truncate": call.service.truncate,
        "tokenization_workers": 1,
        "version": __version__,
        "sha": None,
        "docker_label": None,
        "models": {each.name: list(each.tasks) for each in call.service.models.values()},
    }


def describe_type(model: ServedModel) -> dict[str, Any]:
    """TEI's kind of a model, with its labels or its pooling."""
    labels = {str(number): label for number, label in enumerate(model.labels)}
    if not labels:
        return {"embedding": {"pooling": model.pipeline.embedding.pool}}
    kind = "reranker" if model.can_rerank else "classifier"
    return {kind: {"id2label": labels, "label2id": {label: int(number) for number, label in labels.items()}}}


def _read_texts(inputs: str | list[str | list[str]]) -> tuple[bool, list[Text]]:
    """Whether the inputs are one text or pair, and the texts."""
    if isinstance(inputs, str):
        return True, [inputs]
    if inputs and all(isinstance(each, str) for each in inputs):
        return True, [_pair([str(each) for each in inputs])]
    return False, [_pair([each] if isinstance(each, str) else each) for each in inputs]


def _pair(texts: list[str]) -> Text:
    if len(texts) == 1:
        return texts[0]
    if len(texts) == 2:
        return texts[0], texts[1]
    hint = 'Send a batch as a list of lists: [["one text"], ["another"]].'
    raise invalid(f"`inputs` has {len(texts)} texts in a row; one or two make an input.", "inputs", hint)


def _tokenize(model: ServedModel, texts: Sequence[str], *, specials: bool) -> list[list[SimpleToken]]:
    """The tokens of each text; 422 for an answer that would be too large."""
    tokenizer = model.pipeline.tokenizer
    if not isinstance(tokenizer.start_id, int):
        raise invalid(f'the tokens of the model "{model.name}" are words with their characters, without single ids')
    encoded = tokenizer.encode_batch(texts)
    if sum(len(each.ids) for each in encoded) > _ANSWER_TOKENS:
        raise invalid(f"the answer has more than {_ANSWER_TOKENS:,} tokens: send fewer or shorter texts", "inputs")
    return [_tokens(tokenizer, text, each, specials=specials) for text, each in zip(texts, encoded, strict=True)]


def _tokens(tokenizer: SubwordTokenizer, text: str, tokens: Tokens, *, specials: bool) -> list[SimpleToken]:
    found = [
        SimpleToken(id, text[start:end], False, start, end)
        for id, (start, end) in zip(tokens.ids, tokens.offsets, strict=True)
    ]
    if not specials:
        return found
    ends = [
        SimpleToken(id, tokenizer.id_to_token(id), True, None, None)
        for id in (tokenizer.start_id, tokenizer.end_id)
        if isinstance(id, int)
    ]
    return [ends[0], *found, ends[1]]
