"""The verb that pre-trains an encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bertkit.api.settings import given_settings
from bertkit.api.verb import verb
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.config.settings import Setting, apply, origins, parse_settings, refuse_without_effect, settings_of
from bertkit.config.settings_file import read_settings
from bertkit.contracts import EncoderConfig
from bertkit.data.shards import TOKENIZER, read_manifest
from bertkit.encoder_types.architectures import configure_architecture, name_architecture, spec_of_config
from bertkit.errors import usage_error
from bertkit.options.job import AnyPath
from bertkit.options.pretraining import PretrainOptions, PretrainProfile
from bertkit.pretraining.defaults import (
    advise_profile,
    architecture_defaults,
    default_pretraining_task,
    objective_settings,
    profile_settings,
)
from bertkit.pretraining.from_model import check_same_network, continued_settings, enlarged_config, free_fields
from bertkit.pretraining.planning import PretrainPlan, plan_pretraining
from bertkit.pretraining.record import PretrainRun, pretraining_from_json
from bertkit.pretraining.run import PretrainResult, read_begun
from bertkit.pretraining.run import pretrain as run_pretraining
from bertkit.pretraining.run import resume as resume_pretraining
from bertkit.report.progress import Progress
from bertkit.text.loading import load_tokenizer
from bertkit.training.distributed import rank

_DEFAULT_MINUTES = 60.0
"""Used if neither steps nor minutes are given."""

_DEFAULT_ARCHITECTURE = "bert"
_DEFAULT_SIZE = "mini"


@verb(PretrainOptions)
def pretrain(options: PretrainOptions) -> PretrainResult | PretrainPlan:
    """The run's folder, steps, seconds and scores on held-out text; with ``plan``, what the run would cost."""
    if options.resume is not None:
        return _resume(options, Path(options.resume))
    if options.data is None or (options.output is None and not options.plan):
        raise usage_error("pretrain needs DATA and -o RUN, or --resume RUN.")
    run, known = _build_run(options, Path(options.data), Path(options.output or "."))
    with Progress(options.progress) as bar:
        chosen = (options.profile, options.from_, options.config, options.lr, options.set)
        if not any(chosen) and rank() == 0 and (advice := advise_profile(run.encoder, steps=run.steps)):
            bar.say(advice)
        return plan_pretraining(run, bar) if options.plan else run_pretraining(run, bar, origins=known)


def _resume(options: PretrainOptions, folder: Path) -> PretrainResult:
    if not (options.data is options.output is options.architecture is options.from_ is None) or options.plan:
        raise usage_error(
            "--resume continues a run as it was begun: leave out DATA, -o, --architecture, --from and --plan."
        )
    begun = pretraining_from_json(read_begun(folder)["run"], source=f"{folder}/run.json")
    settings = [
        *_named_settings(options.size, options.profile, begun.encoder),
        *_read_config(options.config),
        *_typed_settings(options),
    ]
    with Progress(options.progress) as bar:
        return resume_pretraining(folder, bar, settings)


def _build_run(options: PretrainOptions, data: Path, output: Path) -> tuple[PretrainRun, Mapping[str, str]]:
    """The record of a new run, and where each of its settings came from.

    Later settings win: those of the encoder, of the chosen objectives, the file of settings, the options.
    """
    typed = _typed_settings(options)
    folders = {"data": Setting("data", data, "DATA"), "output": Setting("output", output, "--output")}
    if named := [folders[each.path] for each in typed if each.path in folders]:
        raise usage_error(f"--set {named[0].path}: the {named[0].path} is given by {named[0].origin}.")
    given = [*_read_config(options.config), *folders.values(), *typed]
    vocab_size, choice = read_manifest(data).vocab_size, _find_choice(given)
    objectives = choice.task.objectives
    if options.from_ is None:
        encoder, defaults = _new_encoder(options, data, vocab_size)
    else:
        encoder, defaults = _encoder_of_model(options, Path(options.from_), vocab_size, chosen=bool(objectives))
    if choice.long_seq_length is None:  # what a profile sets for long rows goes with them
        defaults = [each for each in defaults if not each.path.startswith("long_")]
    settings = [*defaults, *objective_settings(objectives, encoder, vocab_size=vocab_size), *given]
    task = default_pretraining_task(encoder, vocab_size=vocab_size)
    run = apply(PretrainRun(data=data, output=output, encoder=encoder, task=task), settings)
    refuse_without_effect(run, typed)
    if run.steps is None and run.minutes is None:
        run = replace(run, minutes=_DEFAULT_MINUTES)
    chosen = {} if options.architecture is None else {"architecture": f"--architecture {options.architecture}"}
    return run, origins(run, settings) | chosen


@dataclass(frozen=True, kw_only=True)
class _TaskChoice:
    objectives: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Choice:
    """The choices of the user on which defaults depend; a length of 0 is none."""

    task: _TaskChoice = field(default_factory=_TaskChoice)
    long_seq_length: int | None = 0


def _find_choice(given: Sequence[Setting]) -> _Choice:
    """The objectives that the user names, none if there are no such settings, and the length of long rows."""
    return apply(_Choice(), [each for each in given if each.path in ("task.objectives", "long_seq_length")])


def _padding_setting(data: Path, encoder: EncoderConfig) -> list[Setting]:
    """The padding id of the tokenizer, for an encoder that is used with any kind of tokenizer."""
    if spec_of_config(encoder).load_tokenizer is not load_tokenizer or not hasattr(encoder, "pad_id"):
        return []
    return [Setting("encoder.pad_id", load_tokenizer(data / TOKENIZER).pad_id, str(data))]


def _new_encoder(options: PretrainOptions, data: Path, vocab_size: int) -> tuple[EncoderConfig, list[Setting]]:
    """A new encoder, and the settings of its architecture, its size and the profile; later ones win."""
    architecture, size = options.architecture or _DEFAULT_ARCHITECTURE, options.size or _DEFAULT_SIZE
    encoder = configure_architecture(architecture, size, vocab_size=vocab_size)
    origin = "default" if options.architecture is None else f"--architecture {options.architecture}"
    return encoder, [
        *(Setting(*each, origin) for each in architecture_defaults(encoder, vocab_size=vocab_size).items()),
        *_named_settings(options.size, options.profile, encoder),
        *_padding_setting(data, encoder),
    ]


def _encoder_of_model(
    options: PretrainOptions, model: Path, vocab_size: int, *, chosen: bool
) -> tuple[EncoderConfig, list[Setting]]:
    """The encoder of ``model``, and the settings of a run that continues from it, with ``chosen`` objectives or its."""
    if options.profile is not None:
        raise usage_error("--profile is for new weights, and --from has defaults of its own: give one of them.")
    folder = ModelFolder.open(model)
    encoder = enlarged_config(folder, vocab_size=vocab_size)
    name = name_architecture(encoder)
    if options.architecture not in (None, name):
        raise usage_error(f"--architecture is {options.architecture}, and {model} is {name}: leave it out.")
    if options.size is not None:
        check_same_network(model, encoder, apply(encoder, _shape_settings(options.size, encoder)))
    task = default_pretraining_task(encoder, vocab_size=vocab_size)
    origin = f"--from {model}"
    return encoder, [
        *(Setting(*each, origin) for each in architecture_defaults(encoder, vocab_size=vocab_size).items()),
        *settings_of(encoder, origin, "encoder"),
        *(Setting(*each, origin) for each in continued_settings(folder, task, chosen=chosen).items()),
        Setting("from_model", model, "--from"),
    ]


def _read_config(file: AnyPath | None) -> list[Setting]:
    return [] if file is None else read_settings(Path(file))


def _read_mix(options: PretrainOptions) -> dict[str, float] | None:
    """The share of each folder of --mix; None without."""
    shares: dict[str, float] = {}
    for each in options.mix:
        folder, _, share = each.rpartition("=")
        try:
            shares[folder] = float(share)
        except ValueError:
            folder = ""
        if not folder:
            raise usage_error(f"--mix {each}: expected FOLDER=SHARE, such as books=0.25.")
    if len(shares) < len(options.mix):
        raise usage_error("--mix names a folder twice: give each of them once.")
    return shares or None


def _shape_settings(size: str, encoder: EncoderConfig) -> list[Setting]:
    """The shape of the network of this size, by field of ``encoder``; not its padding, dropout or initial values."""
    others = {"position_init", *free_fields(encoder)}
    return [each for each in settings_of(_sized(encoder, size), f"--size {size}") if each.path not in others]


def _sized(encoder: EncoderConfig, size: str) -> EncoderConfig:
    """The configuration of this size with the architecture and vocabulary of ``encoder``."""
    return configure_architecture(name_architecture(encoder), size, vocab_size=getattr(encoder, "vocab_size", 0))


def _typed_settings(options: PretrainOptions) -> list[Setting]:
    return [
        *given_settings(
            steps=options.steps,
            minutes=options.minutes,
            seq_length=options.seq_length,
            seed=options.seed,
            batch_size=options.batch_size,
            shard=options.shard,
            precision=options.precision,
            mix=_read_mix(options),
            also_evaluate=options.also_evaluate,
            **{"optimizer.lr": options.lr},
        ),
        *parse_settings(options.set),
    ]


def _named_settings(size: str | None, profile: PretrainProfile | None, encoder: EncoderConfig) -> list[Setting]:
    """The settings of a size and of a profile, for an encoder with the architecture and vocabulary of ``encoder``."""
    settings: list[Setting] = []
    if size is not None:
        settings += [replace(each, path=f"encoder.{each.path}") for each in _shape_settings(size, encoder)]
        encoder = _sized(encoder, size)
    if profile is not None:
        settings += [Setting(*each, f"--profile {profile}") for each in profile_settings(profile, encoder).items()]
    return settings
