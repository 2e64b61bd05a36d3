"""The ASGI application: the routes, and errors for requests that match none."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bertkit.server.errors import ServerError
from bertkit.server.openapi import describe
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
    routes = [Route(each.path, each, methods=[each.method]) for each in endpoints]
    service.document = describe(endpoints)
    middleware = []
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


async def _explain(request: Request, error: Exception) -> Response:
    """404 and 405 in the body that clients read."""
    assert isinstance(error, HTTPException)
    messages = {404: "no such path: see /openapi.json", 405: "the path does not have this method: see /openapi.json"}
    known = ServerError(error.status_code, messages.get(error.status_code, "the request cannot be answered"))
    return JSONResponse(known.body("flat"), known.status, {**(error.headers or {}), **known.headers()})
