"""Defaults of a pre-training: those of the encoder, and profiles that set several values under one name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bertkit.config.settings import Setting, apply
from bertkit.contracts import EncoderConfig
from bertkit.encoder_types.architectures import find_pretraining_defaults, spec_of_config
from bertkit.encoder_types.settings import context_of
from bertkit.encoder_types.transformer import Transformer
from bertkit.errors import BertkitError
from bertkit.named_objectives import find_objective
from bertkit.options.pretraining import PretrainProfile
from bertkit.pretraining.task import PretrainingTask

_SMALL_WIDTH = 256
"""The widest network for which the settings of quick training were measured (docs/results/learning.md)."""

_QUICK_WIDTH = 512
"""The same for encoders that attend in both directions. BERT-small, 512 wide, has 1.925 bits per character after 8
minutes with them, and 2.141 after 22 minutes without (two cores with AMX)."""

_ENOUGH_FOR_PAPER = 100_000
"""Steps of 256 rows from which on the paper's settings make sense: three days of two cores for a BERT-mini."""

_LEARNING_RATES: Mapping[int, float] = {128: 3e-3, 256: 1e-3}
"""Peak learning rate by hidden width."""


def architecture_defaults(encoder: EncoderConfig, *, vocab_size: int) -> dict[str, object]:
    """The settings of an encoder's pre-training that differ from the defaults of ``PretrainRun``, by path.

    They come from the encoder's module; those that depend on the vocabulary size come from its objectives.
    """
    defaults, objectives = find_pretraining_defaults(encoder), default_objectives(encoder)
    settings: dict[str, object] = {} if objectives == PretrainingTask.objectives else {"task.objectives": objectives}
    settings |= defaults.settings
    for name in objectives:
        settings |= find_objective(name).default_settings(vocab_size)
    return settings


def objective_settings(names: Sequence[str], encoder: EncoderConfig, *, vocab_size: int) -> list[Setting]:
    """The default settings of the objectives that the user adds to the encoder's own, whose settings come with it."""
    own = default_objectives(encoder)
    return [
        Setting(path, value, f"objective {name}")
        for name in names
        if name not in own
        for path, value in find_objective(name).default_settings(vocab_size).items()
    ]


def default_objectives(encoder: EncoderConfig) -> tuple[str, ...]:
    """The objectives of an encoder, by the names of their modules; in a causal configuration, those for it."""
    defaults = find_pretraining_defaults(encoder)
    return defaults.causal_objectives if context_of(encoder) == "causal" else defaults.objectives


def profile_settings(profile: PretrainProfile, encoder: EncoderConfig) -> dict[str, object]:
    """The settings of ``profile`` that differ from the defaults, by path.

    ``paper`` has the published settings of the encoder; those of BERT are the defaults. ``fast`` masks 30 % of the
    tokens (Wettig et al. 2023) and has no dropout in the attention. Encoders that attend in both directions start from
    co-occurrence counts, with heads that look at neighbouring tokens, and leave out next sentences; others start from
    sinusoidal positions. Networks up to 256 wide, or 512 if they attend in both directions, which are trained for
    minutes or hours, also get small batches, no dropout, a high learning rate and short rows before rows of 128; those
    that attend in both directions, Muon and whole-word masking. The settings were measured for BERT
    (docs/results/learning.md); other encoders get those whose fields they have.

    ``encoder`` does not have the user's settings yet: a BERT with ``encoder.causal=true`` gets the settings of one that
    attends in both directions.
    """
    defaults = find_pretraining_defaults(encoder)
    if profile == "paper":
        return dict(defaults.paper)
    settings: dict[str, object] = {"encoder.attention_dropout": 0.0}
    if context_of(encoder) == "bidirectional":
        settings["task.masking.rate"] = 0.3
    if is_bidirectional := _is_bidirectional_transformer(encoder):
        settings |= initial_weights_settings(encoder)
        if others := tuple(name for name in defaults.objectives if name != "nsp"):
            settings["task.objectives"] = others
    else:
        settings |= _sinusoidal_positions(encoder)
    if _suits_quick_training(encoder):
        lr = _LEARNING_RATES.get(getattr(encoder, "hidden_size", 0), 1e-3)
        if is_bidirectional:
            settings |= {**quick_training_settings(encoder, lr=lr, warmup=0.03, decay="late"), **_QUICK_BIDIRECTIONAL}
        else:
            settings |= {**quick_training_settings(encoder, lr=lr, decay="linear"), **_QUICK_OTHERS}
    return {
        path: value for path, value in settings.items() if path not in defaults.not_fast and _has_field(encoder, path)
    }


def advise_profile(encoder: EncoderConfig, *, steps: int | None) -> str | None:
    """A sentence for a run that is too short for the paper's settings, where those of ``fast`` were measured.

    ``steps`` is None for a run of minutes. 500 steps with the paper's settings come to 2.807 bits per character, the
    same tokens with those of ``fast`` to 1.817 (docs/results/learning.md).
    """
    is_short = steps is None or steps < _ENOUGH_FOR_PAPER
    if not (is_short and _is_bidirectional_transformer(encoder) and _suits_quick_training(encoder)):
        return None
    return "these are the settings of BERT's paper, for a million steps; --profile fast learns much more in hours"


def quick_training_settings(
    encoder: EncoderConfig, *, lr: float, decay: str, warmup: float = 0.05
) -> dict[str, object]:
    """Settings of networks that train for minutes or hours: a high learning rate and no dropout.

    ``lr`` is the peak learning rate, ``decay`` the kind of its schedule, and ``warmup`` a share of it.
    """
    width = getattr(encoder, "hidden_size", 0)
    settings: dict[str, object] = {
        "optimizer.lr": lr,
        "optimizer.bias_correction": True,
        "schedule.warmup": warmup,
        "schedule.decay": decay,
        "encoder.dropout": 0.0,
        "encoder.attention_dropout": 0.0,
        "encoder.initializer_range": round(initializer_range(width), 4) if width else 0.02,
    }
    return {path: value for path, value in settings.items() if _has_field(encoder, path)}


_LONG_ROWS: Mapping[str, object] = {"long_seq_length": 128, "long_share": 0.3}

_QUICK_OTHERS: Mapping[str, object] = {"batch_size": 64, "seq_length": 32, **_LONG_ROWS}

_QUICK_BIDIRECTIONAL: Mapping[str, object] = {
    "batch_size": 64,
    "long_batch_size": 32,
    "seq_length": 64,
    **_LONG_ROWS,
    "optimizer.kind": "muon",
    "optimizer.muon_lr": 0.008,
    "schedule.decay_share": 0.6,
    "task.masking.whole_word": True,
}
"""For Transformers that attend in both directions.

BERT-mini, 8,000 subwords, 90 s of one core: the loss of hidden words is 5.82 to 5.86 with these settings and Muon at
0.02, 5.96 with AdamW at twice the learning rate in its place, and 6.19 with AdamW, single tokens masked and rows of 32.
Muon at 0.008 is better from 200 steps on: 1.905 bits per character instead of 1.956 after 1,100 (docs/decisions.md)."""


def initial_weights_settings(encoder: EncoderConfig) -> dict[str, object]:
    """Initial weights from the corpus, where they fit: a Transformer then learns from the first step on.

    Where no heads that look at neighbouring tokens fit, positions are sinusoidal.

    BERT-mini, 79 M tokens of Wikipedia and books: the held-out perplexity after 300 steps of 2,048 tokens is 190 with
    them and 1,221 without.
    """
    if not _is_transformer(encoder):
        return {}
    fits = fits_neighbour_heads(encoder)
    positions = {"encoder.position_init": "neighbour_heads"} if fits else _sinusoidal_positions(encoder)
    return {"token_init": "cooccurrence", **positions}


def _is_bidirectional_transformer(encoder: EncoderConfig) -> bool:
    return context_of(encoder) == "bidirectional" and _is_transformer(encoder)


def _suits_quick_training(encoder: EncoderConfig) -> bool:
    """Whether the settings of quick training were measured for networks of this width."""
    widest = _QUICK_WIDTH if _is_bidirectional_transformer(encoder) else _SMALL_WIDTH
    return getattr(encoder, "hidden_size", 0) <= widest


def _is_transformer(encoder: EncoderConfig) -> bool:
    return issubclass(spec_of_config(encoder).encoder, Transformer)


def fits_neighbour_heads(encoder: EncoderConfig) -> bool:
    """Whether heads that look at neighbouring tokens fit an encoder of this shape."""
    return _accepts(encoder, "neighbour_heads")


def _sinusoidal_positions(encoder: EncoderConfig) -> dict[str, object]:
    """Sinusoidal positions, for an encoder that learns them."""
    return {"encoder.position_init": "sinusoidal"} if _accepts(encoder, "sinusoidal") else {}


def _accepts(encoder: EncoderConfig, position_init: str) -> bool:
    """Whether the configuration, which checks its own values, may have this ``position_init``."""
    path = "position_init"
    if not hasattr(encoder, path):
        return False
    try:
        apply(encoder, [Setting(path, position_init, "default")])
    except BertkitError:
        return False
    return True


def _has_field(encoder: EncoderConfig, path: str) -> bool:
    record, _, field = path.partition(".")
    return record != "encoder" or hasattr(encoder, field)


def default_pretraining_task(encoder: EncoderConfig, *, vocab_size: int) -> PretrainingTask:
    """The pre-training task of an encoder for a vocabulary of ``vocab_size`` tokens."""
    settings = architecture_defaults(encoder, vocab_size=vocab_size).items()
    return apply(
        PretrainingTask(),
        [Setting(path.removeprefix("task."), value, "default") for path, value in settings if path.startswith("task.")],
    )


def initializer_range(hidden_size: int) -> float:
    """The standard deviation of initial weights: 0.02 at width 768 (BERT-base), scaled to keep activations the same."""
    return 0.02 * math.sqrt(768 / hidden_size)
