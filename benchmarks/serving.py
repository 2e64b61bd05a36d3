"""The server beside the bare model and beside other servers, on the same real model in the same run.

    python benchmarks/serving.py MODEL TEXTS.tsv [--infinity COMMAND] > serving.json

MODEL is a folder of embeddings such as all-MiniLM-L6-v2, TEXTS a file whose first column are texts. Each system serves
embeddings from a process of its own with two threads; all are measured in turn in several rounds, and ratios are taken
within a round, so that a busy machine changes them little. ``--infinity`` is the command ``infinity_emb`` of an
environment of its own, as it needs older libraries. The plain server needs ``pip install fastapi``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from bertkit.inference.pipeline import Pipeline, load

CLIENTS = 16
BATCH = 16
"""Texts per request of a client that has many of them."""

ROUNDS = 3
ALONE = 100
"""Requests of one client per round."""

PLAIN = """
import sys, torch, uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from transformers import AutoModel, AutoTokenizer
torch.set_num_threads(2)
tokenizer, model = AutoTokenizer.from_pretrained(sys.argv[1]), AutoModel.from_pretrained(sys.argv[1]).eval()
app = FastAPI()
class Request(BaseModel):
    input: list[str]
@app.get("/health")
def health(): return {}
@app.post("/embeddings")
def embed(request: Request):
    batch = tokenizer(request.input, padding=True, truncation=True, return_tensors="pt")
    with torch.inference_mode():
        states = model(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1)
    vectors = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1))
    return {"data": [{"embedding": row} for row in vectors.tolist()]}
uvicorn.run(app, port=int(sys.argv[2]), log_level="error")
"""


class Client:
    """One keep-alive connection that posts texts to ``/embeddings``."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def __aenter__(self) -> Client:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    async def post(self, *texts: str) -> dict[str, float]:
        """The ``x-`` headers of the answer that are numbers, such as milliseconds."""
        body = json.dumps({"model": "model", "input": texts}).encode()
        head = f"POST /embeddings HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
        self.writer.write(head.encode() + b"\r\n\r\n" + body)
        lines = (await self.reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        assert b" 200 " in lines[0], lines
        headers = {name.decode(): value.strip() for name, _, value in (line.partition(b":") for line in lines)}
        await self.reader.readexactly(int(headers["content-length"]))
        return {name: float(value) for name, value in headers.items() if name.endswith("-time")}


async def many(port: int, texts: Sequence[str], *, per_request: int = 1) -> float:
    """Texts per second of ``CLIENTS`` clients that each wait for an answer before they ask again."""
    remaining = iter([texts[start : start + per_request] for start in range(0, len(texts), per_request)])

    async def work() -> None:
        async with Client(port) as client:
            for batch in remaining:
                await client.post(*batch)

    begin = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(CLIENTS)))
    return len(texts) / (time.perf_counter() - begin)


async def half_load(port: int, texts: Sequence[str], rate: float) -> list[float]:
    """The seconds of each request when ``rate`` of them per second arrive at equal intervals."""
    idle: asyncio.Queue[Client] = asyncio.Queue()
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(4 * CLIENTS):
            idle.put_nowait(await stack.enter_async_context(Client(port)))

        async def one(text: str) -> float:
            begin = time.perf_counter()
            client = await idle.get()
            await client.post(text)
            idle.put_nowait(client)
            return time.perf_counter() - begin

        tasks = []
        start = time.perf_counter()
        for number, text in enumerate(texts):
            await asyncio.sleep(max(0.0, start + number / rate - time.perf_counter()))
            tasks.append(asyncio.create_task(one(text)))
        return list(await asyncio.gather(*tasks))


async def alone(port: int, texts: Sequence[str]) -> list[float]:
    """Seconds of a request beyond those in which the server tokenizes the text and runs the model.

    A call in this process would not do for comparison: its threads wait actively for a while and slow the server.
    """
    seconds = []
    async with Client(port) as client:
        for text in texts:
            begin = time.perf_counter()
            headers = await client.post(text)
            used = headers["x-tokenization-time"] + headers["x-inference-time"]
            seconds.append(time.perf_counter() - begin - used / 1000)
    return seconds


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def serving(command: Sequence[str], port: int) -> Iterator[int]:
    """A server in a process of its own, once it answers."""
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        try:
            wait_until_ready(port, process)
            yield port
        finally:
            process.terminate()


def wait_until_ready(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert process.poll() is None, "the server has ended: its error is above"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            if b" 200 " in connection.recv(100):
                return
        time.sleep(0.2)
    raise RuntimeError("the server does not answer")


def offline(pipeline: Pipeline, texts: Sequence[str]) -> float:
    """Texts per second of one call with all texts."""
    begin = time.perf_counter()
    pipeline.embed(list(texts), normalize=True)
    return len(texts) / (time.perf_counter() - begin)


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--infinity")
    options = parser.parse_args()
    lines = options.texts.read_text(encoding="utf-8").splitlines()[1:]
    texts = [line.split("\t")[0] for line in lines]
    torch.set_num_threads(2)
    pipeline = load(options.model)
    ports = {name: free_port() for name in ("bertkit", "plain", "infinity")}
    commands = {
        "bertkit": [
            sys.executable,
            "-m",
            "bertkit",
            "serve",
            f"model={options.model}",
            "--port",
            str(ports["bertkit"]),
            "--quiet",
        ],
        "plain": [sys.executable, "-c", PLAIN, str(options.model), str(ports["plain"])],
    }
    if options.infinity:
        names = ("--model-id", str(options.model), "--served-model-name", "model", "--port", str(ports["infinity"]))
        settings = ("--device", "cpu", "--engine", "torch", "--dtype", "float32", "--no-bettertransformer")
        commands["infinity"] = [options.infinity, "v2", *names, *settings]
    results: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        results.setdefault(name, []).append(value)

    with contextlib.ExitStack() as stack:
        for name, command in commands.items():
            stack.enter_context(serving(command, ports[name]))
        offline(pipeline, texts)  # loads the model
        for _ in range(ROUNDS):
            note("overhead_ms", 1000 * statistics.median(asyncio.run(alone(ports["bertkit"], texts[:ALONE]))))
            note("offline", offline(pipeline, texts))
            for name in commands:
                note(name, asyncio.run(many(ports[name], texts)))
                note(f"{name}_batches", asyncio.run(many(ports[name], texts, per_request=BATCH)))
            seconds = asyncio.run(half_load(ports["bertkit"], texts, results["bertkit"][-1] / 2))
            note("half_load_p50_ms", 1000 * percentile(seconds, 0.5))
            note("half_load_p99_ms", 1000 * percentile(seconds, 0.99))
    summary = {name: round(statistics.median(values), 3) for name, values in results.items()}
    others = [name for name in commands if name != "bertkit"]
    pairs = [("bertkit", peer) for peer in ("offline", *others)]
    pairs += [("bertkit_batches", peer) for peer in ("offline", *(f"{name}_batches" for name in others))]
    ratios = {
        f"{ours}/{peer}": round(statistics.median(a / b for a, b in zip(results[ours], results[peer], strict=True)), 3)
        for ours, peer in pairs
    }
    print(json.dumps({"median": summary, "ratios": ratios, "rounds": results}, indent=1))


if __name__ == "__main__":
    main()
