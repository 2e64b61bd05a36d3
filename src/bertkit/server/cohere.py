"""Reranking as Cohere, Jina and vLLM offer it: ``POST /v1/rerank`` and ``/v2/rerank``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from bertkit.server import abilities, tei
from bertkit.server.call import Call
from bertkit.server.errors import invalid
from bertkit.server.inputs import check_inputs, check_text
from bertkit.server.models import ServedModel
from bertkit.server.reading import convert
from bertkit.server.records import Count, Request


class Document(Struct):
    """A record with a text, and other fields."""

    text: str


class CohereRerankRequest(Request):
    """Documents to sort by their relevance for a query; texts, or records with a ``text``.

    ``max_tokens_per_doc`` is the most tokens of a document that are read. Of a record only ``text`` is ranked, so
    ``rank_fields`` must be that. ``max_chunks_per_doc`` of Cohere's first version is ignored: a document is one chunk.
    infinity's client always sends ``raw_scores``, which are those without activation.
    """

    query: str
    documents: list[str | Document]
    top_n: Count | None = None
    return_documents: bool | None = None
    max_tokens_per_doc: Count | None = None
    truncate: bool | None = None
    priority: int | None = None
    rank_fields: list[str] | None = None
    max_chunks_per_doc: Count | None = None
    raw_scores: bool | None = None


async def rerank(call: Call, request: CohereRerankRequest) -> object:
    """The documents by their relevance. With ``max_tokens_per_doc`` long ones lose their end, as at Cohere."""
    model = call.find_model(request.model, "text-classification", lambda each: each.can_rerank)
    limits = call.service.limits
    if request.rank_fields not in (None, ["text"]):
        raise invalid('only the field "text" of a document is ranked', "rank_fields")
    query = check_text(request.query, limits, "query")
    documents = [each if isinstance(each, str) else each.text for each in request.documents]
    checked = check_inputs(documents, limits, "documents")
    truncate, num_shortened = request.truncate, 0
    if request.max_tokens_per_doc is not None:
        truncate = True
        checked, num_shortened = await asyncio.to_thread(_shorten, call, model, checked, request.max_tokens_per_doc)
    raw = bool(request.raw_scores)
    ranked = await abilities.rerank(call, model, query, checked, raw=raw, truncate=truncate, field="documents")
    # Both cut the longest documents, so those that one of them cuts are among those of the other.
    call.usage.truncated_inputs = max(call.usage.truncated_inputs, num_shortened)
    results = [
        {"index": each.place, "relevance_score": each.score}
        | ({"document": {"text": documents[each.place]}} if request.return_documents else {})
        for each in ranked[: request.top_n]
    ]
    tokens = call.usage.tokens
    return {
        "id": call.request_id,
        "model": model.name,
        "results": results,
        "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}},
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _shorten(call: Call, model: ServedModel, texts: Sequence[str], most: int) -> tuple[list[str], int]:
    """The texts without what comes after ``most`` tokens, and how many have lost some; ``call`` counts these tokens."""
    found, num_shortened = [], 0
    for text, tokens in zip(texts, model.pipeline.tokenizer.encode_batch(list(texts)), strict=True):
        too_many = len(tokens.ids) - most
        if too_many > 0:
            num_shortened += 1
            call.usage.truncated_tokens += too_many
        found.append(text[: tokens.offsets[most - 1][1]] if too_many > 0 else text)
    return found, num_shortened


async def rerank_either(call: Call, body: dict[str, Any]) -> object:
    """``POST /rerank``: TEI's request has ``texts``, Cohere's ``documents``."""
    if "documents" in body:
        return await rerank(call, convert(body, CohereRerankRequest))
    return await tei.rerank(call, convert(body, tei.RerankRequest))
