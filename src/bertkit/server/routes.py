"""The table of all routes. The application and the OpenAPI document are made from it."""

from __future__ import annotations

from functools import partial

from bertkit.server import cloud, cohere, explanations, forms, health, huggingface, label_studio, openai, openapi, tei
from bertkit.server.endpoint import Endpoint
from bertkit.server.pages import for_browsers
from bertkit.server.reading import FORM
from bertkit.server.records import EmbedRequest, SimilarityRequest
from bertkit.server.streams import StreamEndpoint, StreamLine

_ANY = dict
_EXPLAINED = ("model", "text", "pair")


def list_endpoints() -> list[Endpoint]:
    """Every route of the server, those with the most requests first."""
    return [*_huggingface(), *_openai(), *_tei(), *_cohere(), *_label_studio(), *_cloud(), *_health(), *_pages()]


def _huggingface() -> list[Endpoint]:
    text = "The task is found by the body: " + ", ".join(huggingface.HANDLERS)
    paths = {
        "/": (cloud.invoke, text),
        "/models/{model}": (huggingface.dispatch, text),
        "/pipeline/{task}": (huggingface.run_task, "Run one task"),
        "/models/{model}/pipeline/{task}": (huggingface.run_task, "Run one task of a model"),
    }
    return [
        Endpoint(path=path, handle=handle, record=_ANY, summary=summary, tag="Hugging Face")
        for path, (handle, summary) in paths.items()
    ]


def _openai() -> list[Endpoint]:
    """OpenAI's routes, and infinity's one for classes."""
    route = partial(Endpoint, tag="OpenAI", dialect="nested")
    embed = partial(route, handle=openai.embeddings, record=openai.EmbeddingsRequest, summary="Vectors of texts")
    listed = partial(route, handle=openai.models, method="GET", summary="The loaded models")
    record = openai.InfinityClassifyRequest
    return [
        route(path="/classify", handle=openai.classify, record=record, summary="Classes of texts"),
        *(embed(path=path) for path in ("/v1/embeddings", "/embeddings")),
        *(listed(path=path) for path in ("/v1/models", "/models")),
        route(path="/v1/models/{model}", handle=openai.model, method="GET", summary="One model"),
    ]


def _tei() -> list[Endpoint]:
    posts = (
        ("/embed", huggingface.feature_extraction, EmbedRequest, "Vectors of texts"),
        ("/embed_all", tei.embed_all, EmbedRequest, "States of the tokens of texts"),
        ("/embed_sparse", tei.embed_sparse, EmbedRequest, "Sparse vectors: not supported (424)"),
        ("/rerank", cohere.rerank_either, _ANY, "Texts by their relevance for a query"),
        ("/similarity", huggingface.sentence_similarity, SimilarityRequest, "Cosines with a sentence"),
        ("/tokenize", tei.tokenize, tei.TokenizeRequest, "Tokens of texts"),
        ("/decode", tei.decode, tei.DecodeRequest, "Texts of token ids"),
    )
    return [
        *(
            Endpoint(path=path, handle=handle, record=record, summary=text, tag="TEI")
            for path, handle, record, text in posts
        ),
        *(
            Endpoint(path=path, handle=tei.info, method="GET", summary="What is served", tag="TEI", query=query)
            for path, query in (
                ("/info", ("model",)),
                ("/models/{model}/info", ()),
                ("/pipeline/{task}/info", ("model",)),
            )
        ),
    ]


def _cohere() -> list[Endpoint]:
    return [
        Endpoint(
            path=path,
            handle=cohere.rerank,
            record=cohere.CohereRerankRequest,
            summary="Documents by their relevance for a query",
            tag="Cohere",
            dialect="nested",
        )
        for path in ("/v2/rerank", "/v1/rerank")
    ]


def _label_studio() -> list[Endpoint]:
    return [
        Endpoint(
            path="/setup", handle=label_studio.setup, record=_ANY, summary="The model's version", tag="Label Studio"
        )
    ]


def _cloud() -> list[Endpoint]:
    _, predict = cloud.read_vertex_routes()
    summary = "TEI's /predict, Label Studio's tasks, Vertex's instances, or a task of Hugging Face, by the body"
    paths = dict.fromkeys(("/predict", "/invocations", *([predict] if predict else [])))
    return [Endpoint(path=path, handle=cloud.predict, record=_ANY, summary=summary, tag="Clouds") for path in paths]


def _pages() -> list[Endpoint]:
    gets = (
        ("/", for_browsers(forms.home), "The page for people, or whether the server is ready", ("model",)),
        ("/openapi.json", openapi.document, "This document", ()),
        ("/api-doc/openapi.json", openapi.document, "This document", ()),
        ("/docs", openapi.documentation, "The routes for people", ()),
        ("/attention", for_browsers(explanations.show_attention), "What the heads attend to in a text", _EXPLAINED),
        ("/explain", for_browsers(explanations.show_explanation), "Which tokens a prediction rests on", _EXPLAINED),
    )
    submit = Endpoint(
        path="/page",
        handle=for_browsers(forms.submit),
        record=bytes,
        summary="A form of the page",
        tag="Page",
        accepts=FORM,
    )
    stream = StreamEndpoint(
        path="/stream",
        handle=huggingface.dispatch,
        record=StreamLine,
        query=("model",),
        summary="One input per line, one answer per line",
        tag="Hugging Face",
    )
    listed = [
        Endpoint(path=path, handle=handle, method="GET", summary=text, tag="Page", query=query)
        for path, handle, text, query in gets
    ]
    return [*listed, submit, stream]


def _health() -> list[Endpoint]:
    vertex, _ = cloud.read_vertex_routes()
    ready = (
        "/health",
        "/models/{model}/health",
        "/pipeline/{task}/health",
        "/ready",
        "/ping",
        *([vertex] if vertex else []),
    )
    checks = dict.fromkeys(ready, (health.ready, "Takes requests"))
    checks |= {"/live": (health.live, "The process can answer"), "/warm": (health.warm, "Every model has run once")}
    return [
        *(
            Endpoint(path=path, handle=handle, method="GET", summary=text, tag="Operation", open=True)
            for path, (handle, text) in checks.items()
        ),
        Endpoint(path="/metrics", handle=health.metrics, method="GET", summary="Prometheus metrics", tag="Operation"),
    ]
