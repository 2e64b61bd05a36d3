"""Settings that belong together, under a name.

Of a pre-training: the paper's, and those that learn sooner. Of a fine-tuning: those that a model was published with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from bertkit.encoders.bert import BertConfig
from bertkit.tasks import FileTask
from bertkit.tasks.glue import mrpc, qqp, stsb

Profile = Literal["paper", "fast"]
FinetuneProfile = Literal["bert", "bidaf", "bilstm_attention", "esim", "gpt", "roberta", "tagger"]

_SMALL_WIDTH = 256
"""Up to here the settings were measured (docs/results/pretraining-mini.md)."""

_RATES: Mapping[int, float] = {128: 3e-3, 256: 1e-3}
"""Peak learning rate by hidden width."""


def settings_of_profile(profile: Profile, encoder: BertConfig) -> dict[str, Any]:
    """The settings of ``profile`` that differ from the defaults, by path; those of ``paper`` are the defaults.

    ``fast`` masks 30 % (Wettig et al. 2023), leaves dropout out of the attention and starts positions as sinusoids.
    Narrow networks, which are trained for minutes or hours, also get small batches, no dropout, a high rate, and rows
    of 32 tokens before rows of 128: who looks at what is learnt for every position anew, and 32 are soon learnt.
    """
    if profile == "paper":
        return {}
    anywhere = {
        "task.masking.rate": 0.3,
        "encoder.attention_dropout": 0.0,
        "encoder.first_positions": "sinusoids",
    }
    if encoder.hidden_size > _SMALL_WIDTH:
        return anywhere
    return {
        **anywhere,
        "seq_length": 32,
        "long_seq_length": 128,
        "long_share": 0.3,
        "batch_size": 64,
        "optimizer.lr": _RATES.get(encoder.hidden_size, 1e-3),
        "optimizer.bias_correction": True,
        "schedule.warmup": 0.05,
        "schedule.decay": "linear",
        "encoder.dropout": 0.0,
        "encoder.initializer_range": round(initializer_range(encoder.hidden_size), 4),
    }


def initializer_range(hidden_size: int) -> float:
    """The standard deviation with which a layer of any width passes on as much as BERT-base's, of 0.02 at 768."""
    return 0.02 * math.sqrt(768 / hidden_size)


_GPT: Mapping[str, Any] = {
    "epochs": 3,
    "batch_size": 32,
    "language_weight": 0.5,
    "optimizer.lr": 6.25e-5,
    "optimizer.eps": 1e-8,
    "schedule.warmup": 0.002,
    "schedule.decay": "bert",  # counted from step 0, as in their ``warmup_linear``
}
"""Radford et al. 2018, section 4.1, and openai/finetune-transformer-lm ``train.py``. L2 of 0.01 on matrices, clipping
at 1 and Adam with its bias correction are the defaults here too."""

_ROBERTA: Mapping[str, Any] = {
    "epochs": 10,
    "batch_size": 16,
    "optimizer.lr": 2e-5,
    "optimizer.beta2": 0.98,
    "optimizer.weight_decay": 0.1,
    "optimizer.clip_norm": 0.0,
    "schedule.warmup": 0.06,
}
"""fairseq ``examples/roberta/README.glue.md``, for RTE, MRPC, STS-B and CoLA; the larger tasks have a rate of 1e-5 and
batches of 32."""

_WORDS: Mapping[str, Any] = {"optimizer.weight_decay": 0.0, "optimizer.eps": 1e-8, "schedule.warmup": 0.0}
"""What networks of words have in common. Their rates fell where dev got no better; here they fall in a line."""

_BIDAF: Mapping[str, Any] = {
    **_WORDS,
    "epochs": 20,
    "batch_size": 40,
    "optimizer.lr": 1e-3,
    "optimizer.beta2": 0.9,
    "optimizer.clip_norm": 5.0,
}
"""allennlp-models ``training_config/rc/bidaf_elmo.jsonnet``."""

_BILSTM_ATTENTION: Mapping[str, Any] = {
    **_WORDS,
    "epochs": 20,
    "batch_size": 128,
    "task.max_length": 83,  # two texts of 40 words
    "optimizer.lr": 1e-4,
    "optimizer.clip_norm": 5.0,
}
"""nyu-mll/GLUE-baselines ``src/main.py`` and ``src/final_exps.sh``, which count no epochs; these are ours."""

_ESIM: Mapping[str, Any] = {
    **_WORDS,
    "epochs": 75,
    "batch_size": 32,
    "optimizer.lr": 4e-4,
    "optimizer.clip_norm": 10.0,
}
"""rowanz/swagaf ``swag_baselines/esim/train-elmo.json``; the epochs are the most that it may take."""

_TAGGER: Mapping[str, Any] = {
    **_WORDS,
    "epochs": 75,
    "batch_size": 64,
    "task.crf": True,
    "optimizer.lr": 1e-3,
    "optimizer.clip_norm": 5.0,
}
"""allennlp-models ``training_config/tagging/ner_elmo.jsonnet``; the epochs are the most that it may take."""

_FINETUNING: Mapping[FinetuneProfile, Mapping[str, Any]] = {
    "bert": {},
    "bidaf": _BIDAF,
    "bilstm_attention": _BILSTM_ATTENTION,
    "esim": _ESIM,
    "gpt": _GPT,
    "roberta": _ROBERTA,
    "tagger": _TAGGER,
}

_NO_ORDER = (mrpc.name, qqp.name, stsb.name)
"""GLUE's tasks that ask whether two texts are alike."""


def settings_of_finetuning(profile: FinetuneProfile, task: FileTask) -> dict[str, Any]:
    """The settings that a model was fine-tuned with by its makers, where they differ from the defaults, by path.

    Those of ``bert`` are the defaults. ``gpt`` reads pairs that have no order in both.
    """
    alike = profile == "gpt" and task.name in _NO_ORDER
    return {**_FINETUNING[profile], **({"task.both_orders": True} if alike else {})}
