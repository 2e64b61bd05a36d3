"""Pre-training runs with the published settings of an encoder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from bertkit.config.settings import Setting, apply
from bertkit.contracts import EncoderConfig
from bertkit.data.shards import read_manifest
from bertkit.pretraining.defaults import architecture_defaults, default_pretraining_task, profile_settings
from bertkit.pretraining.record import PretrainRun


def published_run(data: Path, output: Path, encoder: EncoderConfig, **changes: Any) -> PretrainRun:
    """The pre-training of ``encoder`` with its paper's settings; ``changes`` are fields of the run, as ``steps``."""
    vocab_size = getattr(encoder, "vocab_size", 0) or read_manifest(data).vocab_size
    run = PretrainRun(
        data=data, output=output, encoder=encoder, task=default_pretraining_task(encoder, vocab_size=vocab_size)
    )
    defaults = architecture_defaults(encoder, vocab_size=vocab_size)
    settings = {**defaults, **profile_settings("paper", encoder)}
    return replace(apply(run, [Setting(path, value, "paper") for path, value in settings.items()]), **changes)
