"""Training speed on a GPU in under 8 minutes: BERT-base and -large at 128 and 512 tokens, bertkit and Hugging Face.

    python benchmarks/gpu.py --json gpu.json
    python benchmarks/gpu.py --device cpu --sizes tiny --tokens 13 --batch-tokens 39 --seconds 0.1   # without a GPU

First the losses and gradients on the device are compared with float32 on the CPU; a large difference ends the program.
Then complete training steps in bfloat16 (dropout on, MLM and NSP, clipping, fused AdamW) are timed on the same batch,
eager and compiled: ours with compiled blocks, Hugging Face's with the whole model compiled. No data and no network are
needed. Eager systems come first, and none starts after ``--minutes``: what is missing in the table was not measured.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bertkit.batch import IGNORE, Batch
from bertkit.machine.precision import Precision, autocast
from bertkit.model import Model
from bertkit.options.speed import BenchPretrainOptions
from bertkit.speed.pretraining import (
    OPTIMIZER,
    build_huggingface,
    build_model,
    count_work,
    make_batch,
)
from bertkit.speed.training_steps import FindLoss, make_step
from bertkit.training.flops import peak_flops

SYSTEMS = ("ours eager", "hugging face eager", "ours compiled", "hugging face compiled")
ROUNDS = 3
CHECKED = (5, 37)
"""Rows and tokens of the batch for the check of correctness; some of its rows are shorter."""

TOLERANCES: dict[Precision, tuple[float, float]] = {"float32": (1e-3, 0.999), "bfloat16": (2e-2, 0.98)}
"""The largest allowed relative difference of the loss, and the smallest cosine of the gradients."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """The speed of one system; memory is the peak in GiB, None on a CPU; ``mfu`` is None if the peak is unknown."""

    size: str
    tokens: int
    rows: int
    system: str
    seconds: float
    sequences_per_second: float
    tflops: float
    mfu: float | None
    memory: float | None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--sizes", nargs="+", default=["base", "large"])
    parser.add_argument("--tokens", nargs="+", type=int, default=[128, 512])
    parser.add_argument("--batch-tokens", type=int, default=32768, help="rows x tokens of a batch")
    parser.add_argument("--systems", nargs="+", default=SYSTEMS, choices=SYSTEMS)
    parser.add_argument("--seconds", type=float, default=2.0, help=f"length of a round; each system has {ROUNDS}")
    parser.add_argument("--minutes", type=float, default=6.5, help="after which no system starts")
    parser.add_argument("--json", type=Path, help="write every measurement to this file")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("error: this machine has no GPU that torch can use; try --device cpu --sizes tiny.")
    end = time.monotonic() + 60 * arguments.minutes
    device = torch.device(arguments.device)
    correctness = [check(name, device) for name in arguments.sizes]
    results = list(measure(arguments, device, end))
    show(results, device)
    if arguments.json:
        metadata = {"device": describe(device), "torch": torch.__version__, "correctness": correctness}
        record = {**metadata, "results": [asdict(result) for result in results]}
        arguments.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def describe(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"


def check(name: str, device: torch.device) -> dict[str, Any]:
    """Compare float32 and bfloat16 on the device with float32 on the CPU, dropout off; exit if they differ too much."""
    batch = shorten(make_batch(*CHECKED))
    torch.manual_seed(0)
    model, find_loss = build_own(step_size(name, batch), batch)
    weights = model.state_dict()
    expected_loss, expected_gradient = find_gradient(model.eval(), find_loss)
    differences: dict[str, Any] = {"size": name}
    model, find_loss = build_own(step_size(name, batch), batch.to(device))
    model.load_state_dict(weights)
    for precision, (max_difference, min_cosine) in TOLERANCES.items():
        with autocast(device, precision):
            loss, gradient = find_gradient(model.eval(), find_loss)
        difference = abs(loss - expected_loss) / expected_loss
        cosine = float(nn.functional.cosine_similarity(gradient, expected_gradient, dim=0))
        print(f"{name} in {precision}: relative difference of the loss {difference:.1e}, gradient cosine {cosine:.6f}")
        if not (difference <= max_difference and cosine >= min_cosine):
            raise SystemExit(f"error: {name} in {precision} differs from float32 on the CPU; nothing was timed.")
        differences[precision] = {"loss": difference, "cosine": cosine}
    return differences


def build_own(options: BenchPretrainOptions, batch: Batch) -> tuple[Model, FindLoss]:
    """bertkit's model on the device of the batch, and its loss."""
    model = build_model(options).train().to(batch.input_ids.device)

    def find_loss() -> Tensor:
        terms = model.loss(model(batch), batch)
        return torch.stack([term.sum / term.count for term in terms.values()]).sum()

    return model, find_loss


def step_size(name: str, batch: Batch) -> BenchPretrainOptions:
    rows, tokens = batch.input_ids.shape
    return BenchPretrainOptions(size=name, batch_size=rows, seq_length=tokens)


def shorten(batch: Batch) -> Batch:
    """Every other row without its last third, so that padding is tested too."""
    mask = batch.attention_mask.clone()
    mask[::2, 2 * mask.shape[1] // 3 :] = False
    words = batch.labels["mlm"].masked_fill(~mask, IGNORE)
    return replace(batch, attention_mask=mask).with_labels(mlm=words)


def find_gradient(model: nn.Module, find_loss: Callable[[], Tensor]) -> tuple[float, Tensor]:
    model.zero_grad(set_to_none=True)
    loss = find_loss()
    torch.autograd.backward(loss)
    parts = [parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None]
    return loss.item(), torch.cat(parts).double().cpu()


def measure(arguments: argparse.Namespace, device: torch.device, end: float) -> Iterator[Result]:
    """Time every system on every size, until ``end``."""
    for system, name, tokens in product(arguments.systems, arguments.sizes, arguments.tokens):
        if time.monotonic() > end:
            print(f"no time left for {system}, {name}, {tokens} tokens", flush=True)
            continue
        batch = make_batch(max(1, arguments.batch_tokens // tokens), tokens)
        flops = count_work(step_size(name, batch), batch)
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        seconds = time_step(make_system_step(system, name, batch.to(device)), device, arguments.seconds)
        peak = peak_flops(device, "bfloat16")
        result = Result(
            size=name,
            tokens=tokens,
            rows=len(batch),
            system=system,
            seconds=seconds,
            sequences_per_second=len(batch) / seconds,
            tflops=flops / seconds / 1e12,
            mfu=None if peak is None else flops / seconds / peak,
            memory=torch.cuda.max_memory_allocated(device) / 2**30 if device.type == "cuda" else None,
        )
        print(f"{system}, {name}, {tokens} tokens: {result.sequences_per_second:,.1f} sequences/s", flush=True)
        yield result
        free(device)


def make_system_step(system: str, name: str, batch: Batch) -> Callable[[], float]:
    torch.manual_seed(0)
    compiled = system.endswith("compiled")
    model: nn.Module
    if system.startswith("ours"):
        model, find_loss = build_own(step_size(name, batch), batch)
        if compiled:
            for block in model.get_submodule("encoder.layers").children():
                block.compile()
    else:
        model, find_loss = build_huggingface(step_size(name, batch), batch)
        if compiled:
            model.compile()
    return partial(make_step(model, OPTIMIZER, "bfloat16", batch.input_ids.device.type), find_loss)


def time_step(step: Callable[[], float], device: torch.device, length: float) -> float:
    """Seconds per step: the median of all rounds, after a warm-up. A step ends with its loss on the host."""
    for _ in range(3):
        step()
    rounds = []
    for _ in range(ROUNDS):
        wait(device)
        steps, began = 0, time.perf_counter()
        while steps == 0 or time.perf_counter() - began < length:
            step()
            steps += 1
        wait(device)
        rounds.append((time.perf_counter() - began) / steps)
    return statistics.median(rounds)


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def free(device: torch.device) -> None:
    """Free the memory and the compiled graphs of the previous system."""
    torch._dynamo.reset()
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def show(results: list[Result], device: torch.device) -> None:
    """Print a table; the last column is the speed relative to the fastest of Hugging Face."""
    print(f"\n{describe(device)}, torch {torch.__version__}, bfloat16\n")
    print("| model | system | sequences/s | TFLOP/s | MFU | GiB | relative to Hugging Face's best |")
    print("|---|---|---|---|---|---|---|")
    for each in sorted(results, key=lambda result: (result.size, result.tokens)):
        same_size = [other for other in results if (other.size, other.tokens) == (each.size, each.tokens)]
        baselines = [other.sequences_per_second for other in same_size if other.system.startswith("hugging face")]
        ratio = f"{each.sequences_per_second / max(baselines):.2f} x" if baselines else ""
        mfu = "" if each.mfu is None else f"{each.mfu:.0%}"
        memory = "" if each.memory is None else f"{each.memory:.1f}"
        model_name = f"{each.size}, {each.rows} x {each.tokens}"
        speeds = f"{each.sequences_per_second:,.1f} | {each.tflops:,.2f}"
        print(f"| {model_name} | {each.system} | {speeds} | {mfu} | {memory} | {ratio} |")


if __name__ == "__main__":
    main()
