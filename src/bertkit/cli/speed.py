"""The verbs that measure speed: bench prepare, pretrain, finetune and inference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import bertkit
from bertkit.cli.output import show_json, show_lines, show_table
from bertkit.errors import count_of
from bertkit.options.speed import (
    BenchFinetuneOptions,
    BenchInferenceOptions,
    BenchPrepareOptions,
    BenchPretrainOptions,
)

if TYPE_CHECKING:
    from bertkit.speed.rounds import SpeedComparison


def bench_prepare(options: BenchPrepareOptions, *, json: bool) -> None:
    """Show the speed of every system."""
    _show(bertkit.bench_prepare(**vars(options)), json=json)


def bench_pretrain(options: BenchPretrainOptions, *, json: bool) -> None:
    """Show the speed of every system."""
    _show(bertkit.bench_pretrain(**vars(options)), json=json)


def bench_finetune(options: BenchFinetuneOptions, *, json: bool) -> None:
    """Show the speed of every system."""
    _show(bertkit.bench_finetune(**vars(options)), json=json)


def bench_inference(options: BenchInferenceOptions, *, json: bool) -> None:
    """Show the speed of every system."""
    speed = bertkit.bench_inference(**vars(options))
    if json:
        show_json(speed)
        return
    show_lines([f"{speed.processor}, threads: {speed.threads}, {count_of(speed.texts, 'text')}, {speed.clock}"])
    rows = [
        (
            each.system,
            *(_figure(each.texts_per_second), f"{each.texts_bertkit_is_faster:.2f} x"),
            *(_figure(each.long_texts_per_second), f"{each.long_texts_bertkit_is_faster:.2f} x"),
            *(_figure(each.one_text_ms), each.cosine),
        )
        for each in speed.systems
    ]
    faster = "bertkit is faster"
    show_table(("system", "texts/s", faster, "long texts/s", faster, "one text, ms", "smallest cosine"), rows)


def _show(speed: SpeedComparison, *, json: bool) -> None:
    """The medians and ratios of a comparison."""
    if json:
        show_json(speed)
        return
    show_lines([speed.work, f"{speed.processor}, threads: {speed.threads}, {speed.clock}, rounds: {speed.rounds}"])
    rows = [(each.system, _figure(each.per_second), f"{each.bertkit_is_faster:.2f} x") for each in speed.systems]
    show_table(("system", f"{speed.unit}/s", "bertkit is faster"), rows)
    show_lines(speed.notes)


def _figure(value: float) -> str:
    """The digits of a measurement that mean something: 1,724, 660, 75.2, 3.99."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
