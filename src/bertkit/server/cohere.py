"""Reranking as Cohere, Jina and vLLM offer it: ``POST /v1/rerank`` and ``/v2/rerank``."""

from __future__ import annotations

from typing import Any

from bertkit.server import abilities, tei
from bertkit.server.call import Call
from bertkit.server.inputs import check_inputs, check_text
from bertkit.server.reading import convert
from bertkit.server.records import Count, Request


class CohereRerankRequest(Request):
    """Documents to sort by their relevance for a query; texts, or records with a ``text``."""

    query: str
    documents: list[str | dict[str, Any]]
    top_n: Count | None = None
    return_documents: bool = False
    max_tokens_per_doc: Count | None = None
    max_chunks_per_doc: Count | None = None
    rank_fields: list[str] | None = None
    truncate: bool | None = None
    priority: int | None = None


async def rerank(call: Call, request: CohereRerankRequest) -> object:
    """The documents by their relevance. With ``max_tokens_per_doc`` long ones lose their end, as Cohere documents."""
    model = call.find_model(request.model, "text-classification", lambda each: each.is_ranker)
    limits = call.service.limits
    query = check_text(request.query, limits, "query")
    documents = [each if isinstance(each, str) else str(each.get("text", "")) for each in request.documents]
    checked = [str(text) for text in check_inputs(documents, limits, "documents")]
    truncate = True if request.max_tokens_per_doc is not None else request.truncate
    ranked = await abilities.rerank(call, model, query, checked, truncate=truncate, field="documents")
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


async def rerank_either(call: Call, body: dict[str, Any]) -> object:
    """``POST /rerank``: TEI's request has ``texts``, Cohere's ``documents``."""
    if "documents" in body:
        return await rerank(call, convert(body, CohereRerankRequest))
    return await tei.rerank(call, convert(body, tei.RerankRequest))
