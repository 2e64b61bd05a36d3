"""Settings that belong together, under a name.

Of a pre-training: what an encoder is asked, its paper's settings, and those that learn sooner. Of a fine-tuning: those
that a model was published with.

| encoder | asked in its pre-training                  | source of the paper's settings                               |
|---------|--------------------------------------------|--------------------------------------------------------------|
| BERT    | masked words and next sentences            | the defaults: Devlin et al. 2018, section A.2                |
| RoBERTa | masked words in full sentences             | fairseq ``examples/roberta/config/pretraining/base.yaml``    |
| GPT     | the next piece in running text             | Radford et al. 2018, section 4.1                             |
| ELMo    | both neighbours of a word in running text  | allenai/bilm-tf ``bin/train_elmo.py``, ``training.py``       |
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from bertkit.config import Setting, apply
from bertkit.encoder_types import EncoderConfig, name_architecture
from bertkit.task_types.pretraining import PretrainingTask

Profile = Literal["paper", "fast"]

_SMALL_WIDTH = 256
"""Up to here the settings were measured (docs/results/pretraining-mini.md)."""

_RATES: Mapping[int, float] = {128: 3e-3, 256: 1e-3}
"""Peak learning rate by hidden width."""


_QUESTIONS: Mapping[str, Mapping[str, Any]] = {
    "bert": {},
    "roberta": {"task.sampling.next_sentence": False, "task.sampling.full_sentences": True},
    "gpt": {"task.words": "next", "task.sampling.next_sentence": False, "task.sampling.running_text": True},
    "elmo": {"task.words": "neighbours", "task.sampling.next_sentence": False, "seq_length": 20},
}
"""What an architecture is asked, where that is not what BERT is."""

_PAPERS: Mapping[str, Mapping[str, Any]] = {
    "bert": {},
    "roberta": {
        "seq_length": 512,
        "batch_size": 2048,
        "optimizer.lr": 5e-4,
        "optimizer.beta2": 0.98,
        "optimizer.bias_correction": True,
        "optimizer.clip_norm": 0.0,
        "schedule.warmup": 0.08,  # 10,000 of 125,000 steps
        "schedule.decay": "linear",
    },
    "gpt": {
        "seq_length": 512,
        "batch_size": 64,
        "optimizer.lr": 2.5e-4,
        "optimizer.eps": 1e-8,
        "optimizer.bias_correction": True,
        "schedule.warmup": 0.001,  # 2,000 steps; 100 epochs of its books are some millions
        "schedule.decay": "cosine",
    },
    "elmo": {
        "batch_size": 384,
        "optimizer.kind": "adagrad",
        "optimizer.lr": 0.2,
        "optimizer.weight_decay": 0.0,
        "optimizer.clip_norm": 10.0,
        "schedule.warmup": 0.0,
        "schedule.decay": "constant",
    },
}
"""The number of steps is left open: RoBERTa's 125,000, GPT's 100 epochs and ELMo's 10 are for their corpora."""

_SAMPLES = 8192
"""Words that ELMo's are compared with in training (allenai/bilm-tf), where the vocabulary has more."""


def architecture_defaults(encoder: EncoderConfig, *, vocab_size: int) -> dict[str, Any]:
    """What such an encoder is asked in its pre-training, by path; for BERT nothing but the defaults.

    A causal BERT is the paper's left-to-right model without next sentences. ELMo is asked for every word of a
    vocabulary of ``vocab_size``.
    """
    name = name_architecture(encoder)
    settings = dict(_QUESTIONS[name])
    if name == "bert" and encoder.pretraining_objective == "next":
        settings |= {"task.words": "next", "task.sampling.next_sentence": False}
    if encoder.pretraining_objective == "neighbours":
        settings |= {"task.targets": vocab_size, "task.samples": _SAMPLES if vocab_size > _SAMPLES else None}
    return settings


def profile_settings(profile: Profile, encoder: EncoderConfig) -> dict[str, Any]:
    """The settings of ``profile`` that differ from the defaults, by path; those of ``paper`` for BERT are the defaults.

    ``fast`` masks 30 % (Wettig et al. 2023), leaves dropout out of the attention and starts positions as sinusoids.
    Narrow networks, which are trained for minutes or hours, also get small batches, no dropout, a high rate, and rows
    of 32 tokens before rows of 128: who looks at what is learnt for every position anew, and 32 are soon learnt. It was
    measured for BERT; the others get of it what they have.
    """
    if profile == "paper":
        return dict(_PAPERS[name_architecture(encoder)])
    width = getattr(encoder, "hidden_size", 0)
    settings: dict[str, Any] = {"encoder.attention_dropout": 0.0, "encoder.position_init": "sinusoids"}
    if encoder.pretraining_objective == "masked":
        settings["task.masking.rate"] = 0.3
    if width <= _SMALL_WIDTH:
        settings |= {
            "batch_size": 64,
            "optimizer.lr": _RATES.get(width, 1e-3),
            "optimizer.bias_correction": True,
            "schedule.warmup": 0.05,
            "schedule.decay": "linear",
            "encoder.dropout": 0.0,
            "encoder.initializer_range": round(initializer_range(width), 4) if width else 0.02,
        }
        if encoder.pretraining_objective != "neighbours":
            settings |= {"seq_length": 32, "long_seq_length": 128, "long_share": 0.3}
    return {path: value for path, value in settings.items() if _has(encoder, path)}


def _has(encoder: EncoderConfig, path: str) -> bool:
    record, _, field = path.partition(".")
    return record != "encoder" or hasattr(encoder, field)


def default_pretraining_task(encoder: EncoderConfig, *, vocab_size: int) -> PretrainingTask:
    """What such an encoder is asked."""
    settings = architecture_defaults(encoder, vocab_size=vocab_size).items()
    found = [
        Setting(path.removeprefix("task."), value, "usual") for path, value in settings if path.startswith("task.")
    ]
    return apply(PretrainingTask(), found)


def initializer_range(hidden_size: int) -> float:
    """The standard deviation with which a layer of any width passes on as much as BERT-base's, of 0.02 at 768."""
    return 0.02 * math.sqrt(768 / hidden_size)
