"""The verb that makes a model from tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bertkit.api.options import given_settings
from bertkit.api.paths import AnyPath
from bertkit.config import Setting, apply, origins, parse_settings, read_settings, settings_of
from bertkit.data.shards import read_manifest
from bertkit.encoder_types import EncoderConfig, configure_architecture, name_architecture
from bertkit.errors import usage_error
from bertkit.pretraining.defaults import Profile, architecture_defaults, default_pretraining_task, profile_settings
from bertkit.pretraining.planning import PretrainPlan, plan_pretraining
from bertkit.pretraining.record import PretrainRun, pretraining_from_json
from bertkit.pretraining.run import PretrainResult, read_begun
from bertkit.pretraining.run import pretrain as run_pretraining
from bertkit.pretraining.run import resume as resume_pretraining
from bertkit.report.progress import Mode, Progress

_MINUTES = 60.0
"""What a pre-training takes when neither steps nor minutes are given."""

_ARCHITECTURE = "bert"
_SIZE = "mini"


def pretrain(
    data: AnyPath | None = None,
    *,
    output: AnyPath | None = None,
    resume: AnyPath | None = None,
    architecture: str | None = None,
    size: str | None = None,
    profile: Profile | None = None,
    steps: int | None = None,
    minutes: float | None = None,
    seq_length: int | None = None,
    batch_size: int | None = None,
    lr: float | None = None,
    seed: int | None = None,
    shard: bool | None = None,
    config: AnyPath | None = None,
    set: Sequence[str] = (),
    plan: bool = False,
    progress: Mode = "auto",
) -> PretrainResult | PretrainPlan:
    """Train an encoder on prepared text into ``output``, or go on with the run ``resume``, or only ``plan``."""
    written = read_settings(Path(config)) if config else []
    typed = [
        *given_settings(steps=steps, minutes=minutes, seq_length=seq_length, seed=seed, batch_size=batch_size),
        *given_settings(shard=shard, **{"optimizer.lr": lr}),
        *parse_settings(set),
    ]
    if resume is not None:
        if not (data is output is architecture is None) or plan:
            raise usage_error(
                "a resumed run has its data, its folder and its architecture: give --resume RUN without them or --plan."
            )
        begun = pretraining_from_json(read_begun(Path(resume))["run"], source=f"{resume}/run.json")
        with Progress(progress) as bar:
            return resume_pretraining(Path(resume), bar, [*_named(size, profile, begun.encoder), *written, *typed])
    if data is None or (output is None and not plan):
        raise usage_error("pretrain needs DATA and -o RUN, or --resume RUN.")
    data, output = Path(data), Path(output or ".")
    vocab_size = read_manifest(data).vocab_size
    encoder = configure_architecture(architecture or _ARCHITECTURE, size or _SIZE, vocab_size=vocab_size)
    asked = f"--architecture {architecture}"
    settings = [
        *(Setting(*each, asked) for each in architecture_defaults(encoder, vocab_size=vocab_size).items()),
        *_named(size or _SIZE, profile, encoder),
        *written,
        Setting("data", data, "DATA"),
        Setting("output", output, "--output"),
        *typed,
    ]
    run = apply(
        PretrainRun(
            data=data, output=output, encoder=encoder, task=default_pretraining_task(encoder, vocab_size=vocab_size)
        ),
        settings,
    )
    if run.steps is None and run.minutes is None:
        run = replace(run, minutes=_MINUTES)
    known = origins(run, settings) | ({} if architecture is None else {"architecture": asked})
    with Progress(progress) as bar:
        return plan_pretraining(run, bar) if plan else run_pretraining(run, bar, origins=known)


def _named(size: str | None, profile: Profile | None, encoder: EncoderConfig) -> list[Setting]:
    """What a size and a profile decide for a network of the kind of ``encoder``, with its vocabulary."""
    found: list[Setting] = []
    if size is not None:
        name, vocab_size = name_architecture(encoder), getattr(encoder, "vocab_size", 0)
        encoder = configure_architecture(name, size, vocab_size=vocab_size)
        found += settings_of(encoder, f"--size {size}", "encoder")
    if profile is not None:
        found += [Setting(*each, f"--profile {profile}") for each in profile_settings(profile, encoder).items()]
    return found
