"""The training loop: an iterator of steps.

There is no trainer class and there are no hooks: the caller saves, evaluates, logs and stops between two
steps with plain ``if``s.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from bertkit.batch import IGNORE, Batch, LossTerms
from bertkit.contracts import BatchSource
from bertkit.data.batches import batch_indices, batches_in_epoch, prefetch
from bertkit.errors import DivergenceError
from bertkit.model import Model
from bertkit.training.distributed import SINGLE_PROCESS, ProcessGroup, full_tensor
from bertkit.training.memory import disable_malloc_trim
from bertkit.training.optimizer import OptimizerConfig, load_named_state, named_state, set_lr
from bertkit.training.precision import Precision, autocast
from bertkit.training.schedule import ScheduleConfig, lr_factor

_SKIPS_BEFORE_GIVING_UP = 10
_CLIPPING_MARGIN = 1e-6
"""torch adds it to the norm before it divides."""
_TOKENS, _FLOPS = "tokens", "flops"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How long and how to train. Each process cuts its share of a batch into micro-batches of ``micro_batch_size``.

    The schedule counts from step ``schedule_from``, and ends ``total_steps`` later. ``loader_workers`` threads make the
    batches of the steps to come; how many they are changes nothing else. None is one for a GPU, and none for a CPU,
    which loses 2 % of its speed to it and has no other device to keep busy.
    """

    total_steps: int
    batch_size: int
    micro_batch_size: int | None = None
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    schedule_from: int = 0
    precision: Precision = "float32"
    seed: int = 0
    loader_workers: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """What happened in one step. ``losses`` are means over the labels of the whole step; times in seconds.

    ``flops`` are the floating-point operations that it could not do without, 0 where nobody counts them.
    """

    step: int
    epoch: int
    losses: dict[str, float]
    grad_norm: float
    lr: float
    examples: int
    tokens: int
    flops: int
    seconds: float
    skipped: bool


@dataclass(slots=True, eq=False)
class TrainingState:
    """Everything that a step changes. Saving it and the random state makes a resume bit-exact."""

    model: Model
    optimizer: torch.optim.Optimizer
    step: int = 0
    skipped_in_a_row: int = 0

    def groups(self) -> dict[str, dict[str, Tensor]]:
        """The state as named groups of tensors, without a copy."""
        random = {"cpu": torch.get_rng_state()}
        if torch.cuda.is_available():
            random["cuda"] = torch.cuda.get_rng_state()
        groups = {
            "model": self.model.state_dict(),
            "optimizer": named_state(self.model, self.optimizer),
            "random": random,
        }
        state = self.model.encoder.state()
        return {**groups, "carried": state} if state else groups

    def restore(self, groups: dict[str, dict[str, Tensor]], step: int, skipped_in_a_row: int = 0) -> None:
        """Put back what ``groups`` returned after ``step`` steps, the last ``skipped_in_a_row`` of them skipped."""
        self.model.load_state_dict(groups["model"])
        load_named_state(self.model, self.optimizer, groups["optimizer"])
        torch.set_rng_state(groups["random"]["cpu"])
        if torch.cuda.is_available() and "cuda" in groups["random"]:
            torch.cuda.set_rng_state(groups["random"]["cuda"])
        device = next(self.model.parameters()).device
        self.model.encoder.load_state({name: each.to(device) for name, each in groups.get("carried", {}).items()})
        self.step, self.skipped_in_a_row = step, skipped_in_a_row


def fit(
    state: TrainingState,
    source: BatchSource,
    plan: Plan,
    *,
    first_step: int = 0,
    until: int | None = None,
    group: ProcessGroup = SINGLE_PROCESS,
    count_flops: Callable[[Batch], int] | None = None,
) -> Iterator[Step]:
    """Train from ``state.step`` to ``until``; epochs of ``source`` are counted from ``first_step``.

    All processes of ``world`` do this together, on the same batches as one process would have; each reports the same
    losses. Alone a process draws dropout from torch's generator, which a checkpoint keeps; among others from (seed,
    step, rank), which nobody has to keep.

    Raises DivergenceError after ten steps in a row whose loss or gradient is not finite; such steps change nothing.
    """
    device = next(state.model.parameters()).device
    read = partial(_read_share, source, plan, group=group, pin=device.type == "cuda", count_flops=count_flops)
    workers = int(device.type != "cpu") if plan.loader_workers is None else plan.loader_workers
    steps = range(state.step, plan.schedule_from + plan.total_steps if until is None else until)
    state.model.train()
    disable_malloc_trim()
    begin = time.perf_counter()
    for share in prefetch((partial(read, step - first_step) for step in steps), workers):
        if group.size > 1:
            torch.manual_seed(group.seed(plan.seed, state.step))
        counts = group.all_reduce_sum({**count_labels(state.model, share.batches), **share.work})
        lr = plan.optimizer.lr * lr_factor(plan.schedule, state.step - plan.schedule_from, plan.total_steps)
        losses = group.all_reduce_sum(accumulate_gradients(state.model, share.batches, counts, device, plan.precision))
        group.sum_gradients(state.model.parameters())
        grad_norm, skipped = _update(state, losses, plan.optimizer.clip_norm, lr)
        state.step += 1
        yield Step(
            step=state.step,
            epoch=share.epoch,
            losses=losses,
            grad_norm=grad_norm,
            lr=lr,
            examples=share.examples,
            tokens=counts[_TOKENS],
            flops=counts[_FLOPS],
            seconds=time.perf_counter() - begin,
            skipped=skipped,
        )
        begin = time.perf_counter()


class _Share(NamedTuple):
    """This process's micro-batches of a batch that has so many ``examples`` in all, and what work they are."""

    epoch: int
    examples: int
    batches: list[Batch]
    work: dict[str, int]


def _read_share(
    source: BatchSource,
    plan: Plan,
    step: int,
    *,
    group: ProcessGroup,
    pin: bool,
    count_flops: Callable[[Batch], int] | None,
) -> _Share:
    """The share of ``step``, counted from the first of epoch 0.

    Where a short batch has no rows left for this process, it reads one without labels: all make as many passes.
    """
    epoch, place = divmod(step, batches_in_epoch(source, plan.batch_size))
    indices = batch_indices(source, plan.batch_size, seed=plan.seed, epoch=epoch, step=place)
    batches, work = [], {_TOKENS: 0, _FLOPS: 0}
    for part in group.share(indices, plan.micro_batch_size or plan.batch_size):
        batch = source.batch(epoch, part if len(part) else indices[:1])
        if len(part):
            work[_TOKENS] += batch.num_tokens
            work[_FLOPS] += count_flops(batch) if count_flops else 0
        else:
            batch = batch.with_labels(**{name: torch.full_like(each, IGNORE) for name, each in batch.labels.items()})
        batches.append(batch.pinned() if pin else batch)
    return _Share(epoch, len(indices), batches, work)


def count_labels(model: Model, batches: list[Batch]) -> dict[str, int]:
    """How many labels each loss term has in all micro-batches together."""
    counts: dict[str, int] = {}
    for batch in batches:
        for name, count in model.counts(batch).items():
            counts[name] = counts.get(name, 0) + count
    return counts


def accumulate_gradients(
    model: Model, batches: list[Batch], counts: Mapping[str, int], device: torch.device, precision: Precision
) -> dict[str, float]:
    """Add the gradient of the mean loss over all micro-batches; the means are returned by name.

    Each term is divided by its true total, ``counts``: that of all micro-batches and all processes. So these are this
    process's parts of the gradient and of the means.
    """
    sums: list[tuple[str, Tensor]] = []
    for batch in batches:
        moved = batch.to(device)
        with autocast(device, precision):
            terms = model.loss(model(moved), moved)
        torch.autograd.backward(mean_loss(terms, counts))
        sums += [(name, term.sum.detach()) for name, term in terms.items()]
    # Read when all passes are on their way: to read a number of a GPU is to wait for it.
    totals: dict[str, float] = {}
    for name, each in sums:
        totals[name] = totals.get(name, 0.0) + float(each) / max(1, counts[name])
    return totals


def mean_loss(terms: LossTerms, counts: Mapping[str, int]) -> Tensor:
    """The sum of all terms, each over its count; by their weights, which are equal in BERT (paper, A.2)."""
    return torch.stack([term.weight * term.sum.float() / max(1, counts[name]) for name, term in terms.items()]).sum()


def _update(state: TrainingState, losses: dict[str, float], clip_norm: float, lr: float) -> tuple[float, bool]:
    """Clip by the global norm and step, or step over a loss or a gradient that is not finite."""
    weights = list(state.model.parameters())
    found = nn.utils.get_total_norm([each.grad for each in weights if each.grad is not None], foreach=True)
    norm = float(full_tensor(found))
    finite = all(map(math.isfinite, (norm, *losses.values())))
    if finite:
        if 0 < clip_norm < norm + _CLIPPING_MARGIN:  # to multiply all gradients by 1 takes 2 % of a step
            nn.utils.clip_grads_with_norm_(weights, clip_norm, found, foreach=True)
        set_lr(state.optimizer, lr)
        state.optimizer.step()
        state.skipped_in_a_row = 0
    else:
        state.skipped_in_a_row += 1
    state.optimizer.zero_grad(set_to_none=True)
    if state.skipped_in_a_row >= _SKIPS_BEFORE_GIVING_UP:
        raise DivergenceError(
            f"the loss or its gradient was not finite {_SKIPS_BEFORE_GIVING_UP} steps in a row, up to step "
            f"{state.step + 1}. What was saved before is good. Train anew with a lower --lr."
        )
    return norm, not finite
