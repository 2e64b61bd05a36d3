"""The ASGI application: the routes, and errors for requests that match none."""

from __future__ import annotations

import time
from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from bertkit.server.endpoint import ENCODER, Endpoint, finish, start_call
from bertkit.server.errors import Dialect, ServerError
from bertkit.server.openapi import describe
from bertkit.server.reading import JSON
from bertkit.server.routes import list_endpoints
from bertkit.server.service import Service

_EXPOSED = (
    "x-request-id",
    "x-error-message",
    "retry-after",
    "retry-after-ms",
    "x-truncated-inputs",
    "x-truncated-tokens",
)
"""Headers of answers that a page in a browser may read."""


def build_app(service: Service, *, cors_origins: Sequence[str] = ()) -> Starlette:
    """The application for a service; pages of ``cors_origins`` may call it from a browser."""
    endpoints = list_endpoints()
    routes = [Route(_without_slash(each.path), each, methods=[each.method]) for each in endpoints]
    service.document = describe(endpoints)
    middleware = [Middleware(_IgnoredSlash)]
    if cors_origins:
        middleware.append(
            Middleware(
                CORSMiddleware,
                allow_origins=list(cors_origins),
                allow_methods=["GET", "POST"],
                allow_headers=["*"],
                expose_headers=_EXPOSED,
            )
        )
    app = Starlette(routes=routes, middleware=middleware, exception_handlers={HTTPException: _explain})
    app.router.redirect_slashes = False
    app.state.service = service
    return app


class _IgnoredSlash:
    """Ignores one slash at the end of a path."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "path": _without_slash(scope["path"])}
        await self._app(scope, receive, send)


def _without_slash(path: str) -> str:
    return path.removesuffix("/") or "/"


async def _explain(request: Request, error: Exception) -> Response:
    """404 and 405, logged and counted like the answers of routes, in the body that the clients of the path read."""
    assert isinstance(error, HTTPException)
    begin = time.monotonic()
    call = start_call(request.scope, begin)
    matches = [
        route
        for route in request.app.routes
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE
    ]
    messages = {404: "no such path: see /openapi.json", 405: "the path does not have this method: see /openapi.json"}
    known = ServerError(error.status_code, messages.get(error.status_code, "the request cannot be answered"))
    headers = {**known.headers(), "x-request-id": call.request_id}
    if matches:
        headers["allow"] = ", ".join(sorted({method for route in matches for method in route.methods or ()}))
    finish(call, known.status, time.monotonic() - begin)
    body = ENCODER.encode(known.body(_dialect(request.url.path, matches)))
    return Response(body, known.status, headers, JSON)


def _dialect(path: str, matches: Sequence[Route]) -> Dialect:
    """That of another method of the path, else the one of OpenAI and Cohere where their routes are."""
    if matches and isinstance(endpoint := matches[0].endpoint, Endpoint):
        return endpoint.dialect
    return "nested" if path.startswith(("/v1/", "/v2/")) else "flat"
