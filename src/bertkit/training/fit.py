"""The training loop: ``fit`` is an iterator of steps.

There is no trainer class and there are no hooks: the caller saves, evaluates, logs and stops between two steps with
plain ``if``s.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from bertkit.batch import IGNORE, Batch, LossTerms
from bertkit.contracts import BatchSource, ScheduledSource, Stateful
from bertkit.data.batches import batch_indices, batches_in_epoch, prefetch
from bertkit.errors import DivergenceError, count_of, usage_error
from bertkit.machine.memory import disable_malloc_trim
from bertkit.machine.precision import Precision, autocast
from bertkit.model import Model
from bertkit.training.averaging import WeightAverage
from bertkit.training.base_optimizer import Optimizer
from bertkit.training.distributed import SINGLE_PROCESS, ProcessGroup, full_tensor
from bertkit.training.gradients import dense_parts, kept_by_row, large_tables, total_norm
from bertkit.training.optimizer import OptimizerConfig, load_named_state, named_state, set_lr
from bertkit.training.schedule import ScheduleConfig, lr_factor

_MAX_SKIPPED_IN_A_ROW = 10

_CLIP_EPSILON = 1e-6
"""Added to the norm before the division, as in ``torch.nn.utils.clip_grad_norm_``: norms slightly below the limit are
clipped too."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How long and how to train.

    ``batch_size`` counts examples over all processes. Each process splits its part into micro-batches of
    ``micro_batch_size`` (None: no split). The schedule starts at step ``schedule_from`` and ends ``total_steps`` later.
    With ``total_seconds`` instead, ``schedule_from`` and the length of the schedule are seconds since the beginning,
    evaluations and checkpoints included: learning rate, masking and the end depend on the time.

    ``loader_workers`` threads prepare the batches of the next steps. Their number changes no result of a run with
    ``total_steps``; in a timed run the masking of a batch is that of the time when it was made. None means 1 for a GPU
    and 0 for a CPU, where a thread costs 2 % of the speed and there is no other device to keep busy.
    """

    total_steps: int | None = None
    total_seconds: float | None = None
    batch_size: int
    micro_batch_size: int | None = None
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    schedule_from: float = 0
    precision: Precision = "float32"
    seed: int = 0
    loader_workers: int | None = None

    @property
    def total(self) -> float:
        """The length of the schedule, in steps or seconds."""
        total = self.total_steps if self.total_seconds is None else self.total_seconds
        assert total is not None, "a plan has total_steps or total_seconds"
        return total

    def reached(self, step: int, elapsed: float) -> float:
        """How far training is at ``step``, ``elapsed`` seconds after the beginning; in the unit of ``total``."""
        return step if self.total_seconds is None else elapsed

    def in_schedule(self, step: int, elapsed: float) -> float:
        """How far the schedule is then, which begins at ``schedule_from``."""
        return self.reached(step, elapsed) - self.schedule_from


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """What happened in one step, over all processes.

    ``losses`` are means over all labels of the step, by the name of the loss term, and ``loss`` is their weighted sum,
    which is minimised; ``tokens`` are real tokens without padding; ``flops`` are the necessary floating-point
    operations (see ``flops.py``), 0 if they are not counted; ``seconds`` is the time of the step itself, with the
    making of its batch, without the caller's work between steps. A ``skipped`` step changed no weight.
    """

    step: int
    epoch: int
    loss: float
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
    """Everything that a step changes.

    ``groups`` includes the random state too: on a CPU, with ``total_steps`` and the same number of processes, a resume
    makes the same steps bit for bit (not ELMo's in several processes, whose recurrent states begin at zero again).

    ``elapsed`` is the seconds from the beginning to the end of the last step, without those between a stop and a
    resume. Plans with ``total_seconds`` measure it and decide by it; for others it stays 0. ``average`` is the average
    of the weights, if the run has one.
    """

    model: Model
    optimizer: Optimizer
    step: int = 0
    skipped_in_a_row: int = 0
    elapsed: float = 0.0
    average: WeightAverage | None = None

    def groups(self) -> dict[str, dict[str, Tensor]]:
        """The state as tensors in groups, without copies.

        They are "model", "optimizer" and "random", and if the run has them "encoder_state" and "average".
        """
        random = {"cpu": torch.get_rng_state()}
        if (device := self._device()).type == "cuda":
            random["cuda"] = torch.cuda.get_rng_state(device)
        groups = {
            "model": self.model.state_dict(),
            "optimizer": named_state(self.model, self.optimizer),
            "random": random,
        }
        encoder = self.model.encoder
        state = encoder.state() if isinstance(encoder, Stateful) else {}
        if self.average is not None:
            groups["average"] = self.average.tensors()
        return {**groups, "encoder_state": state} if state else groups

    def averaged(self) -> AbstractContextManager[None]:
        """A context in which the model has its averaged weights, if there is an average."""
        return nullcontext() if self.average is None else self.average.swapped_in()

    def restore(
        self, groups: dict[str, dict[str, Tensor]], step: int, skipped_in_a_row: int = 0, elapsed: float = 0.0
    ) -> None:
        """Load what ``groups`` returned after ``step`` steps, of which the last ``skipped_in_a_row`` were skipped."""
        self.model.load_state_dict(groups["model"])
        load_named_state(self.model, self.optimizer, groups["optimizer"])
        if self.average is not None:
            self.average.load(groups["average"])
        torch.set_rng_state(groups["random"]["cpu"])
        device = self._device()
        if device.type == "cuda" and "cuda" in groups["random"]:
            torch.cuda.set_rng_state(groups["random"]["cuda"], device)
        encoder_state = groups.get("encoder_state", {})
        if isinstance(self.model.encoder, Stateful):
            self.model.encoder.load_state({name: tensor.to(device) for name, tensor in encoder_state.items()})
        self.step, self.skipped_in_a_row, self.elapsed = step, skipped_in_a_row, elapsed

    def _device(self) -> torch.device:
        """The device that trains, and not simply a GPU where there is one.

        A GPU that is asked for its random state takes memory, even if it is not used.
        """
        return next(self.model.parameters()).device


def fit(
    state: TrainingState,
    source: BatchSource,
    plan: Plan,
    *,
    first_step: int = 0,
    until: float | None = None,
    group: ProcessGroup = SINGLE_PROCESS,
    count_flops: Callable[[Batch], int] | None = None,
) -> Iterator[Step]:
    """Train from ``state.step`` to ``until``; the epochs of ``source`` are counted from ``first_step``.

    With ``plan.total_seconds`` training ends with the first step that ends after ``until`` seconds. The learning rate
    of a step follows from ``state.elapsed`` before it, its masking from ``state.elapsed`` when its batch was made:
    without threads that make batches ahead, a step is a function of the state before it, also after a resume.

    All processes of ``group`` call this together, on the global batches of a single process, and report the same
    losses. A single process draws dropout from torch's generator, whose state is in a checkpoint; each of several seeds
    it with (seed, step, rank) in every step. Raises DivergenceError after ten steps in a row without a finite loss.
    """
    device = next(state.model.train().parameters()).device
    read = partial(_read_batch, state.model, source, plan, group=group, pin=device.type == "cuda", flops=count_flops)
    end = plan.schedule_from + plan.total if until is None else until
    steps = itertools.takewhile(lambda step: plan.reached(step, state.elapsed) < end, itertools.count(state.step))
    calls = (partial(read, step - first_step, progress=_progress(plan, step, state.elapsed)) for step in steps)
    tables = large_tables(state.model, state.optimizer) if group.size == 1 else []
    disable_malloc_trim()  # page faults were a sixth of a BERT-mini step on a CPU
    first_second = (begin := time.perf_counter()) - state.elapsed
    for local in prefetch(calls, _count_workers(plan, device)):
        if group.size > 1:  # other dropout in every process, without a state to save
            torch.manual_seed(group.seed(plan.seed, state.step))
        counts, tokens, flops = _sum_counts(local, group)
        factor = lr_factor(plan.schedule, plan.in_schedule(state.step, state.elapsed), plan.total)
        loss, losses = _find_gradients(state.model, local.batches, counts, device, plan.precision, tables, group)
        grad_norm, skipped = _update(state, losses, plan.optimizer, factor)
        state.step += 1
        now = time.perf_counter()
        if plan.total_seconds is not None:
            state.elapsed = group.all_reduce_max(now - first_second)
        if state.average is not None and not skipped:
            state.average.update(_progress(plan, state.step, state.elapsed))
        yield Step(
            step=state.step,
            epoch=local.epoch,
            loss=loss,
            losses=losses,
            grad_norm=grad_norm,
            lr=plan.optimizer.lr * factor,
            examples=local.examples,
            tokens=tokens,
            flops=flops,
            seconds=now - begin,
            skipped=skipped,
        )
        if plan.total_seconds is not None and state.elapsed >= end:
            state.elapsed = group.all_reduce_max(time.perf_counter() - first_second)  # with the caller's last work
            break
        begin = time.perf_counter()  # after the yield: the caller's work between two steps is not part of a step
    if 0 < state.step == state.skipped_in_a_row:
        raise _diverged(state.step, state.step)


def _count_workers(plan: Plan, device: torch.device) -> int:
    """Threads that make batches ahead of the steps; on a CPU they would only take time from them."""
    return int(device.type != "cpu") if plan.loader_workers is None else plan.loader_workers


def _progress(plan: Plan, step: int, elapsed: float) -> float:
    """The share of the schedule that is done, from 0 to 1."""
    return min(1.0, plan.in_schedule(step, elapsed) / plan.total)


class _LocalBatch(NamedTuple):
    """The micro-batches of this process, and the numbers of their labels (by loss term), real tokens and FLOPs.

    ``examples`` counts the whole batch.
    """

    epoch: int
    examples: int
    batches: list[Batch]
    labels: dict[str, int]
    tokens: int
    flops: int


def _sum_counts(local: _LocalBatch, group: ProcessGroup) -> tuple[dict[str, int], int, int]:
    """The labels, tokens and FLOPs of all processes together, in one exchange."""
    tokens, flops, *labels = group.all_reduce_sum([local.tokens, local.flops, *local.labels.values()])
    return dict(zip(local.labels, labels, strict=True)), tokens, flops


def _find_gradients(
    model: Model,
    batches: Sequence[Batch],
    counts: Mapping[str, int],
    device: torch.device,
    precision: Precision,
    tables: Sequence[nn.Embedding],
    group: ProcessGroup,
) -> tuple[float, dict[str, float]]:
    """Sum the gradients of the micro-batches of all processes; return the sums of the loss and of its terms."""
    with kept_by_row(tables):
        loss, losses = accumulate_gradients(model, batches, counts, device, precision)
    total, *terms = group.all_reduce_sum([loss, *losses.values()])
    group.sum_gradients(model.parameters())
    return total, dict(zip(losses, terms, strict=True))


def _read_batch(
    model: Model,
    source: BatchSource,
    plan: Plan,
    step: int,
    *,
    group: ProcessGroup,
    progress: float,
    pin: bool,
    flops: Callable[[Batch], int] | None,
) -> _LocalBatch:
    """This process's share of the batch of ``step``, counted from the first step of epoch 0.

    ``progress`` is the share of the schedule that is done.

    If a short batch has no rows left for this process, it reads one row without labels: gradients are exchanged by all
    processes, so all must make the same number of passes.
    """
    epoch, epoch_step = divmod(step, batches_in_epoch(source, plan.batch_size))
    indices = batch_indices(source, plan.batch_size, seed=plan.seed, epoch=epoch, step=epoch_step)
    current = source.at(progress) if isinstance(source, ScheduledSource) else source
    batches, num_tokens, num_flops = [], 0, 0
    for part in group.share(indices, plan.micro_batch_size or plan.batch_size):
        batch = current.batch(epoch, part if len(part) else indices[:1])
        if len(part):
            num_tokens += batch.num_tokens
            num_flops += flops(batch) if flops else 0
        else:
            batch = batch.with_labels(**{name: torch.full_like(each, IGNORE) for name, each in batch.labels.items()})
        batches.append(batch.pinned() if pin else batch)
    return _LocalBatch(epoch, len(indices), batches, count_labels(model, batches), num_tokens, num_flops)


def count_labels(model: Model, batches: Sequence[Batch]) -> dict[str, int]:
    """How many labels each loss term has in all micro-batches together, by the name of the term."""
    counts: dict[str, int] = {}
    for batch in batches:
        for name, count in model.counts(batch).items():
            counts[name] = counts.get(name, 0) + count
    return counts


def accumulate_gradients(
    model: Model, batches: Sequence[Batch], counts: Mapping[str, int], device: torch.device, precision: Precision
) -> tuple[float, dict[str, float]]:
    """Add the gradient of the mean loss over all micro-batches; return that loss, and the mean of each term by name.

    Each term is divided by ``counts``, its number of labels in all micro-batches of all processes: the mean of the
    means of micro-batches would weight their labels unequally. So the gradient and the means are this process's
    summands of the global ones.
    """
    losses: list[Tensor] = []
    sums: list[tuple[str, Tensor]] = []
    for batch in batches:
        moved = batch.to(device)
        with autocast(device, precision):
            terms = model.loss(model(moved), moved)
        loss = mean_loss(terms, counts)
        torch.autograd.backward(loss)
        losses.append(loss.detach())
        sums += [(name, term.sum.detach()) for name, term in terms.items()]
    # float() waits for the GPU, so it is called after all passes have been queued.
    totals: dict[str, float] = {}
    for name, each in sums:
        totals[name] = totals.get(name, 0.0) + float(each) / max(1, counts[name])
    return sum(map(float, losses)), totals


def mean_loss(terms: LossTerms, counts: Mapping[str, int]) -> Tensor:
    """The weighted sum of all loss terms, each divided by its count. BERT's weights are all 1 (paper, section A.2)."""
    if unknown := [name for name in terms if name not in counts]:
        raise usage_error(
            f'a loss term is named "{unknown[0]}", and labels are counted for {", ".join(counts)}: an objective names '
            "its loss term after its label."
        )
    return torch.stack([term.weight * term.sum.float() / max(1, counts[name]) for name, term in terms.items()]).sum()


def _update(
    state: TrainingState, losses: dict[str, float], config: OptimizerConfig, factor: float
) -> tuple[float, bool]:
    """Clip by the global norm and update the weights, or skip a step whose loss or gradient is not finite.

    ``factor`` multiplies the peak learning rates. Returns the norm before clipping, and whether the step was skipped.
    """
    gradients = dense_parts(state.model.parameters())
    found = total_norm(gradients)
    norm = float(full_tensor(found))
    finite = all(map(math.isfinite, (norm, *losses.values())))
    if finite:
        if 0 < config.clip_norm < norm + _CLIP_EPSILON:  # multiplying all gradients by 1 would take 2 % of a step
            torch._foreach_mul_(gradients, torch.clamp(config.clip_norm / (found + _CLIP_EPSILON), max=1.0))
        set_lr(state.optimizer, config, factor)
        state.optimizer.step()
        state.skipped_in_a_row = 0
    else:
        state.skipped_in_a_row += 1
    state.optimizer.zero_grad()
    if state.skipped_in_a_row >= _MAX_SKIPPED_IN_A_ROW:
        raise _diverged(state.skipped_in_a_row, state.step + 1)
    return norm, not finite


def _diverged(steps: int, last: int) -> DivergenceError:
    return DivergenceError(
        f"the loss or its gradient was not finite in {count_of(steps, 'step')} in a row, up to step {last:,}. Train "
        "again with a lower --lr; labels that are very large numbers need another unit."
    )
