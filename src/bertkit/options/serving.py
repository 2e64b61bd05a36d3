"""Options of serve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from bertkit.options.inputs import InputFile
from bertkit.options.job import AnyPath, InferenceJobOptions
from bertkit.ranges import PositiveFloat, PositiveInt, Range


@dataclass(frozen=True, kw_only=True)
class ServeOptions(InferenceJobOptions):
    """Serve models over HTTP, with the protocols of Hugging Face, OpenAI, TEI, Cohere and Label Studio.

    The server answers until Ctrl-C; a browser shows a page at its address, which is http://127.0.0.1:8080 by default.
    """

    models: Sequence[AnyPath] = field(kw_only=False)
    """Run folders or model folders, each named after its folder; NAME=FOLDER gives another name."""
    host: str = "127.0.0.1"
    """Address to listen on; 0.0.0.0 for all networks of this machine."""
    port: Annotated[int, Range(0, 65535)] | None = None
    """Port to listen on; 0 takes a free one. [default: 8080, or AIP_HTTP_PORT, which Vertex AI sets]"""
    api_key_file: InputFile | None = None
    """File with one API key per line: requests without one of them are refused."""
    auto_truncate: bool = False
    """Cut off the end of texts that are too long, and report it, instead of refusing them."""
    max_batch_tokens: PositiveInt = 2048
    """Tokens that a model reads at a time."""
    max_requests: PositiveInt = 256
    """Requests at a time; further ones are told to come back later (429)."""
    timeout: PositiveFloat = 60.0
    """Seconds after which a request is given up (504)."""
    grace: PositiveFloat = 30.0
    """Seconds that running requests have after a signal to stop."""
    cors_origin: Sequence[str] = ()
    """Origins whose pages may call the server from a browser, such as https://example.org. [default: none]"""
