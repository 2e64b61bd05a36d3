"""Runs a service until a signal: the socket, the event loop, the deadlines of connections, and the graceful stop."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import re
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import uvicorn

from bertkit.errors import usage_error
from bertkit.options.serving import ServeOptions
from bertkit.report.progress import Progress
from bertkit.server import logs
from bertkit.server.app import build_app
from bertkit.server.cloud import read_vertex_port
from bertkit.server.connections import limit_connections, raise_file_limit
from bertkit.server.keys import ApiKeys, is_readable_by_others
from bertkit.server.limits import Limits
from bertkit.server.model_thread import ModelThread
from bertkit.server.service import Service, describe_models, load_models

_BACKLOG = 2048
_ACCEPTED_AT_A_TIME = 16
"""New connections in one turn of the event loop, so that those above the limit are closed before files run out."""
_ORIGIN = re.compile(r"https?://[^/\s]+")
"""As browsers send it: without a path, and so without a slash at the end."""

_GRACE_CHECK_SECONDS = 0.05
_PORT = 8080
_ENDING = (signal.SIGTERM, signal.SIGHUP)
_REFUSAL_SECONDS = 0.5
"""For telling those whose requests did not finish in time."""


class Server:
    """A service at the URL ``address``, to which ``listener`` is bound, and where it listens from now on.

    ``grace`` are the seconds that running requests have after a signal.
    """

    def __init__(
        self, service: Service, listener: socket.socket, *, grace: float, cors_origins: Sequence[str] = ()
    ) -> None:
        self.service = service
        self.grace = grace
        self.listener = listener
        listener.listen(_BACKLOG)
        host, port = listener.getsockname()[:2]
        self.address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        config = uvicorn.Config(
            build_app(service, cors_origins=cors_origins),
            http=limit_connections(service.limits),
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=60,
            timeout_graceful_shutdown=1,  # for what remains to be sent
            backlog=_ACCEPTED_AT_A_TIME,
        )
        self._uvicorn = _WithoutSignals(config)

    def run(self, started: Callable[[], None] = lambda: None) -> None:
        """Warm the models up, serve, and return after a signal or ``stop``. ``started`` is called when it is ready.

        The socket answers during the warm-up: /live is 200 and /ready is 503.
        """
        asyncio.run(self._serve(started))

    def stop(self) -> None:
        """Refuse new work, let running requests finish, and end; a second call ends at once."""
        state = self.service.state
        if state.stopping:
            self.service.batcher.abandon()
            self._uvicorn.force_exit = self._uvicorn.should_exit = True
        state.stopping = True

    async def _serve(self, started: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, *_ENDING):
                if signal.getsignal(number) is not signal.SIG_IGN:  # as SIGHUP is under nohup
                    loop.add_signal_handler(number, self.stop)
        serving = asyncio.create_task(self._uvicorn.serve(sockets=[self.listener]))
        try:
            await asyncio.to_thread(self.service.start)
            started()
            await asyncio.wait((serving, asyncio.create_task(self._wait_for_stop())), return_when="FIRST_COMPLETED")
        finally:
            self._uvicorn.should_exit = True
            await serving
            await asyncio.to_thread(self.service.stop)

    async def _wait_for_stop(self) -> None:
        """Return when a signal has come and no request is open, or the time for them is over."""
        state = self.service.state
        while not state.stopping:
            await asyncio.sleep(_GRACE_CHECK_SECONDS)
        if not await self._wait_for_requests(self.grace):
            self.service.batcher.abandon()
            for task in self._uvicorn.server_state.tasks:
                task.cancel()  # see Endpoint: the answer is 503
            await self._wait_for_requests(_REFUSAL_SECONDS)

    async def _wait_for_requests(self, seconds: float) -> bool:
        """Whether no request is open any more within ``seconds``."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.service.state.accepted:
                    await asyncio.sleep(_GRACE_CHECK_SECONDS)
        return not self.service.state.accepted


def serve(options: ServeOptions) -> None:
    """Serve the models of ``options`` until a signal."""
    for origin in options.cors_origin:
        if origin != "*" and not _ORIGIN.fullmatch(origin):
            raise usage_error(
                f"--cors-origin {origin} is no origin: write https://example.org, without a path or slash."
            )
    key_file = None if options.api_key_file is None else Path(options.api_key_file)
    keys = None if key_file is None else ApiKeys.read(key_file)
    limits = Limits(seconds=options.timeout, requests=options.max_requests, batch_tokens=options.max_batch_tokens)
    # The address before the models, which may take minutes.
    port = read_vertex_port(_PORT) if options.port is None else options.port
    with bind(options.host, port) as listener, ModelThread() as thread:
        try:
            models = thread.submit(load_models, options.models, options.precision).result()
        except SystemExit as end:
            if end.code in [128 + number for number in _ENDING]:
                return  # the command makes that of a signal: nobody has been answered yet
            raise
        service = Service(models, limits, thread=thread, keys=keys, truncate=options.auto_truncate)
        raise_file_limit()
        server = Server(service, listener, grace=options.grace, cors_origins=options.cors_origin)
        logs.set_up(quiet=options.progress == "quiet")
        with Progress(options.progress) as bar:

            def say(sentence: str) -> None:
                with contextlib.suppress(OSError):  # a full disk or a closed pipe is no reason not to serve
                    bar.say(sentence)

            say(describe_models(service.models))
            if not is_loopback(options.host) and keys is None:
                say(f"anyone who can reach {options.host} can use these models: --api-key-file FILE asks for a key")
            if key_file is not None and is_readable_by_others(key_file):
                say(f"other users of this machine can read {key_file}: chmod 600 it")

            def begin() -> None:
                gc.collect()
                gc.freeze()  # what is there stays: a large body is then decoded five times as fast
                say(f"{server.address} answers; Ctrl-C stops it")

            server.run(started=begin)


class _WithoutSignals(uvicorn.Server):
    """Uvicorn without its signal handlers, which would end the process with the signal after a graceful stop."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; asyncio has shortened the queue of the sockets to what it accepts at a time."""
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(_BACKLOG)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the handlers as they are."""
        yield


def bind(host: str, port: int) -> socket.socket:
    """A socket at an address, at which no other process listens; port 0 takes a free one.

    It does not listen yet: clients are refused, and do not wait, while the models are loaded.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sets TCP_NODELAY on connections: the body of an answer, sent after its headers,
    # would else wait 40 ms for the client's acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        reason = error.strerror or error
        raise usage_error(
            f"cannot listen on {host}, port {port}: {reason}. Choose another --port or --host."
        ) from error
    listener.setblocking(False)
    return listener


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
