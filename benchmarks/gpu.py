"""Everything that needs a GPU, in under 8 minutes: BERT-base and large at 128 and 512, ours beside Hugging Face's.

    python benchmarks/gpu.py --json gpu.json
    python benchmarks/gpu.py --device cpu --sizes tiny --tokens 13 --places 39 --seconds 0.1   # the same path, no GPU

First the losses and gradients on the device are held to those of float32 on the CPU; a difference ends it. Then whole
training steps in bfloat16 (dropout on, MLM and NSP, fused AdamW) are timed, eager and compiled, on the same batch:
ours compiled has its blocks compiled, Hugging Face's the whole model. It needs no data and no network. Eager ones come
first, and none begins after ``--minutes``: what is missing in the table was not measured.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import torch
from pretraining_step import Step, build_ours, build_theirs, count_work, make_batch, make_step
from torch import Tensor, nn

from bertkit.batch import IGNORE, Batch
from bertkit.training.flops import peak_flops

CONTENDERS = ("ours eager", "hugging face eager", "ours compiled", "hugging face compiled")
TURNS = 3
CHECKED = (5, 37)
"""Rows and tokens of the batch that correctness is seen on; some of its rows are shorter."""

TOLERANCES = {"float32": (1e-3, 0.999), "bf16": (2e-2, 0.98)}
"""The largest relative difference of the loss, and the least cosine of the gradients."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """One contender; memory is the peak in GiB, None on a CPU, and ``mfu`` None where the peak is not known."""

    size: str
    tokens: int
    rows: int
    contender: str
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
    parser.add_argument("--places", type=int, default=32768, help="rows x tokens of a batch")
    parser.add_argument("--contenders", nargs="+", default=CONTENDERS, choices=CONTENDERS)
    parser.add_argument("--seconds", type=float, default=2.0, help=f"length of a turn; each contender has {TURNS}")
    parser.add_argument("--minutes", type=float, default=6.5, help="after which no contender begins")
    parser.add_argument("--json", type=Path, help="write every measurement to this file")
    asked = parser.parse_args()
    if asked.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("error: this machine has no GPU that torch can use; --device cpu --sizes tiny tries the path.")
    end = time.monotonic() + 60 * asked.minutes
    device = torch.device(asked.device)
    correctness = [check(name, device) for name in asked.sizes]
    results = list(measure(asked, device, end))
    show(results, device)
    if asked.json:
        about = {"device": describe(device), "torch": torch.__version__, "correctness": correctness}
        record = {**about, "results": [asdict(result) for result in results]}
        asked.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def describe(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"


def check(name: str, device: torch.device) -> dict[str, Any]:
    """Differences of the device's float32 and bfloat16 from float32 on the CPU, dropout off; too large ones end it."""
    batch = shorten(make_batch(*CHECKED))
    torch.manual_seed(0)
    model, find_loss = build_ours(name, batch)
    weights = model.state_dict()
    wanted, slopes = find_gradient(model.eval(), find_loss)
    found: dict[str, Any] = {"size": name}
    model, find_loss = build_ours(name, batch.to(device))
    model.load_state_dict(weights)
    for precision, (furthest, least) in TOLERANCES.items():
        with torch.autocast(device.type, torch.bfloat16) if precision == "bf16" else nullcontext():
            loss, gradient = find_gradient(model.eval(), find_loss)
        away = abs(loss - wanted) / wanted
        cosine = float(nn.functional.cosine_similarity(gradient, slopes, dim=0))
        print(f"{name} in {precision}: loss {away:.1e} from float32 on the CPU, cosine of the gradients {cosine:.6f}")
        if not (away <= furthest and cosine >= least):
            raise SystemExit(f"error: {name} in {precision} is not what float32 on the CPU is; nothing was timed.")
        found[precision] = {"loss": away, "cosine": cosine}
    return found


def shorten(batch: Batch) -> Batch:
    """Every other row without its last third, so that padding is seen too."""
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


def measure(asked: argparse.Namespace, device: torch.device, end: float) -> Iterator[Result]:
    """The contests, one contender after the other, as far as the time goes."""
    for contender, name, tokens in product(asked.contenders, asked.sizes, asked.tokens):
        if time.monotonic() > end:
            print(f"no time for {contender}, {name}, {tokens} tokens", flush=True)
            continue
        batch = make_batch(max(1, asked.places // tokens), tokens)
        flops = count_work(name, batch)
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        seconds = time_step(make_contender(contender, name, batch.to(device)), device, asked.seconds)
        peak = peak_flops(device, "bfloat16")
        result = Result(
            size=name,
            tokens=tokens,
            rows=len(batch),
            contender=contender,
            seconds=seconds,
            sequences_per_second=len(batch) / seconds,
            tflops=flops / seconds / 1e12,
            mfu=None if peak is None else flops / seconds / peak,
            memory=torch.cuda.max_memory_allocated(device) / 2**30 if device.type == "cuda" else None,
        )
        print(f"{contender}, {name}, {tokens} tokens: {result.sequences_per_second:,.1f} sequences/s", flush=True)
        yield result
        free(device)


def make_contender(contender: str, name: str, batch: Batch) -> Step:
    torch.manual_seed(0)
    compiled = contender.endswith("compiled")
    model: nn.Module
    if contender.startswith("ours"):
        model, find_loss = build_ours(name, batch)
        if compiled:
            for block in model.get_submodule("encoder.layers").children():
                block.compile()
    else:
        model, find_loss = build_theirs(name, batch)
        if compiled:
            model.compile()
    return make_step(model, find_loss, "bf16", batch.input_ids.device.type)


def time_step(step: Step, device: torch.device, length: float) -> float:
    """Seconds of a step: the median of some turns, after a warm-up. A step ends with its loss on the host."""
    for _ in range(3):
        step()
    turns = []
    for _ in range(TURNS):
        wait(device)
        steps, began = 0, time.perf_counter()
        while steps == 0 or time.perf_counter() - began < length:
            step()
            steps += 1
        wait(device)
        turns.append((time.perf_counter() - began) / steps)
    return statistics.median(turns)


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def free(device: torch.device) -> None:
    """Give back the memory, and the graphs, of the contender before."""
    torch._dynamo.reset()
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def show(results: list[Result], device: torch.device) -> None:
    """A table, the contests below each other; the last column is against the faster one of Hugging Face."""
    print(f"\n{describe(device)}, torch {torch.__version__}, bfloat16\n")
    print("| model | contender | sequences/s | TFLOP/s | MFU | GiB | against Hugging Face's best |")
    print("|---|---|---|---|---|---|---|")
    for each in sorted(results, key=lambda result: (result.size, result.tokens)):
        contest = [other for other in results if (other.size, other.tokens) == (each.size, each.tokens)]
        rivals = [other.sequences_per_second for other in contest if other.contender.startswith("hugging face")]
        ratio = f"{each.sequences_per_second / max(rivals):.2f} x" if rivals else ""
        mfu = "" if each.mfu is None else f"{each.mfu:.0%}"
        memory = "" if each.memory is None else f"{each.memory:.1f}"
        contest_name = f"{each.size}, {each.rows} x {each.tokens}"
        speeds = f"{each.sequences_per_second:,.1f} | {each.tflops:,.2f}"
        print(f"| {contest_name} | {each.contender} | {speeds} | {mfu} | {memory} | {ratio} |")


if __name__ == "__main__":
    main()
