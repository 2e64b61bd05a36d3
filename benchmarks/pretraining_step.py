"""The speed of a pre-training step (forward, backward, AdamW): bertkit compared with Hugging Face.

    python benchmarks/pretraining_step.py --size mini --batch 32 --tokens 128
    python benchmarks/pretraining_step.py --size base --batch 8 --tokens 128

Dropout is on, 15 % of the tokens are masked, and both systems learn MLM and NSP from the same batch with the same
optimizer. Every system has its own process, because ours changes how the C library keeps memory, which would help the
others too. They alternate in rounds of a few seconds, one at a time, so that a busy machine slows all of them; medians
and their ratios are printed. One more process computes a single large bfloat16 product; the share of its FLOP/s that
the necessary products of a step reach is printed too.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from bertkit.batch import Batch
from bertkit.contracts import Objective
from bertkit.encoders.bert import Bert, size
from bertkit.model import Model
from bertkit.objective_settings import Masking
from bertkit.objectives.mlm import MaskedLanguageModel, mask_tokens
from bertkit.objectives.nsp import NextSentencePrediction
from bertkit.rng import CounterRng
from bertkit.training.flops import count_flops
from bertkit.training.memory import disable_malloc_trim

VOCAB = 30522
CLS, SEP, MASK = 101, 102, 103
CEILING = (4096, 768, 3072)
"""Rows, inner and outer width of the product that measures the speed of the chip."""

Step = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What is trained, and the seconds of a round."""

    size: str
    rows: int
    tokens: int
    threads: int
    seconds: float


def make_batch(rows: int, tokens: int) -> Batch:
    """Full rows of random tokens, masked as in pre-training."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(1000, VOCAB, (rows, tokens), generator=generator)
    ids[:, 0], ids[:, tokens // 2], ids[:, -1] = CLS, SEP, SEP
    segments = (torch.arange(tokens) > tokens // 2).long().expand(rows, tokens).contiguous()
    batch = Batch(
        input_ids=ids,
        segment_ids=segments,
        attention_mask=torch.ones_like(ids, dtype=torch.bool),
        labels={"nsp": torch.randint(0, 2, (rows,), generator=generator)},
    )
    rng = CounterRng(0, 0, np.arange(rows))
    return mask_tokens(batch, rng, Masking(), vocab_size=VOCAB, mask_id=MASK, special_ids=(CLS, SEP))


def make_step(model: nn.Module, find_loss: Callable[[], Tensor], precision: str, device: str = "cpu") -> Step:
    """A complete step as a function; every system gets the same optimizer and the same autocast."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step() -> float:
        with torch.autocast(device, torch.bfloat16) if precision == "bf16" else nullcontext():
            loss = find_loss()
        torch.autograd.backward(loss)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    return step


def build_model(name: str) -> Model:
    """A BERT with the heads of MLM and NSP."""
    encoder = Bert(size(name, vocab_size=VOCAB))
    heads: dict[str, Objective] = {
        "mlm": MaskedLanguageModel(encoder.embeddings.word),
        "nsp": NextSentencePrediction(encoder.hidden_size),
    }
    return Model(encoder, heads)


def count_work(name: str, batch: Batch) -> int:
    """The necessary floating-point operations of a step."""
    with torch.device("meta"):
        model = build_model(name)
    return count_flops(model, batch)


def build_ours(name: str, batch: Batch) -> tuple[Model, Callable[[], Tensor]]:
    """bertkit's model on the device of the batch, and its loss."""
    model = build_model(name).train().to(batch.input_ids.device)

    def find_loss() -> Tensor:
        terms = model.loss(model(batch), batch)
        return torch.stack([term.sum / term.count for term in terms.values()]).sum()

    return model, find_loss


def build_theirs(name: str, batch: Batch) -> tuple[nn.Module, Callable[[], Tensor]]:
    """Hugging Face's model with torch's attention (sdpa), and its loss."""
    import transformers

    ours = size(name, vocab_size=VOCAB)
    model = transformers.BertForPreTraining(
        transformers.BertConfig(
            vocab_size=VOCAB,
            hidden_size=ours.hidden_size,
            num_hidden_layers=ours.num_layers,
            num_attention_heads=ours.num_heads,
            intermediate_size=ours.intermediate_size,
            attn_implementation="sdpa",
        )
    )
    model = model.train().to(batch.input_ids.device)
    inputs = {
        "input_ids": batch.input_ids,
        "token_type_ids": batch.segment_ids,
        "attention_mask": batch.attention_mask.long(),
        "labels": batch.labels["mlm"],
        "next_sentence_label": batch.labels["nsp"],
    }

    def find_loss() -> Tensor:
        loss: Tensor = model(**inputs).loss
        return loss

    return model, find_loss


def make_ours(name: str, batch: Batch, precision: str) -> Step:
    disable_malloc_trim()
    return make_step(*build_ours(name, batch), precision)


def make_theirs(name: str, batch: Batch, precision: str) -> Step:
    return make_step(*build_theirs(name, batch), precision)


def make_ceiling(name: str, batch: Batch, precision: str) -> Step:
    """One matrix product, large enough for full speed."""
    states = torch.randn(CEILING[0], CEILING[1], dtype=torch.bfloat16)
    weight = torch.randn(CEILING[2], CEILING[1], dtype=torch.bfloat16)
    return lambda: nn.functional.linear(states, weight)


MAKERS = {"ours": make_ours, "hugging face": make_theirs, "ceiling": make_ceiling}
SYSTEMS = ["ours", "hugging face"]


def run_rounds(requests: Connection, setup: Setup, system: str, precision: str) -> None:
    """In its own process: warm up, then answer each request for a round with the steps per second."""
    torch.set_num_threads(setup.threads)
    torch.manual_seed(0)
    step = MAKERS[system](setup.size, make_batch(setup.rows, setup.tokens), precision)
    step()
    step()
    requests.send("ready")
    while requests.recv() == "round":
        steps, began = 0, time.perf_counter()
        while steps == 0 or time.perf_counter() - began < setup.seconds:
            step()
            steps += 1
        requests.send(steps / (time.perf_counter() - began))


def measure(setup: Setup, systems: list[tuple[str, str]], repeats: int) -> dict[str, list[float]]:
    """Steps/s of every repeat; the systems alternate."""
    spawn = multiprocessing.get_context("spawn")
    pipes: dict[str, Connection] = {}
    for system, precision in systems:
        here, remote = spawn.Pipe()
        spawn.Process(target=run_rounds, args=(remote, setup, system, precision), daemon=True).start()
        here.recv()
        pipes[f"{system} {precision}"] = here
    speeds: dict[str, list[float]] = {name: [] for name in pipes}
    for _ in range(repeats):
        for name, pipe in pipes.items():
            pipe.send("round")
            speeds[name].append(pipe.recv())
    for pipe in pipes.values():
        pipe.send("end")
    return speeds


def report(setup: Setup, speeds: dict[str, list[float]]) -> dict[str, float]:
    """Print the table; return the medians of tokens/s, and the GFLOP/s of the ceiling."""
    tokens = setup.rows * setup.tokens
    necessary = count_work(setup.size, make_batch(setup.rows, setup.tokens)) / 1e9
    steps = {name: statistics.median(values) for name, values in speeds.items()}
    ceiling = steps.pop("ceiling bf16") * 2 * math.prod(CEILING) / 1e9
    baselines = {name: speed for name, speed in steps.items() if not name.startswith("ours")}
    print(f"BERT-{setup.size}, {setup.rows} x {setup.tokens}, {setup.threads} threads, torch {torch.__version__}")
    for name, speed in steps.items():
        ratios = "".join(f"   {speed / other:5.2f} x {baseline}" for baseline, other in baselines.items())
        share = f"{speed * necessary / ceiling:4.0%} of the bf16 ceiling"
        print(f"{name:22} {speed * tokens:9,.0f} tokens/s   {share}{ratios}")
    print(f"ceiling                {ceiling:9,.0f} GFLOP/s in bf16; a step has {necessary:,.0f} necessary GFLOP")
    return {"ceiling GFLOP/s": ceiling, **{name: speed * tokens for name, speed in steps.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="mini", help="tiny ... large, or layers/width/heads")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--precision", nargs="+", default=["float32", "bf16"], choices=["float32", "bf16"])
    parser.add_argument("--systems", nargs="+", default=SYSTEMS, choices=SYSTEMS)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of one round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write every measurement to this file")
    arguments = parser.parse_args()
    setup = Setup(
        size=arguments.size,
        rows=arguments.batch,
        tokens=arguments.tokens,
        threads=arguments.threads,
        seconds=arguments.seconds,
    )
    systems = [(system, precision) for precision in arguments.precision for system in arguments.systems]
    systems.append(("ceiling", "bf16"))
    speeds = measure(setup, systems, arguments.repeats)
    medians = report(setup, speeds)
    if arguments.json:
        record = {"setup": vars(setup), "steps_per_second": speeds, "medians": medians}
        arguments.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
