"""Published fine-tuning settings of each model, by profile name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from bertkit.task_types import FileTask
from bertkit.tasks.glue import cola, mrpc, qqp, rte, stsb

FinetuneProfile = Literal["bert", "bidaf", "bilstm_attention", "esim", "gpt", "roberta", "tagger"]


_GPT: Mapping[str, object] = {
    "epochs": 3,
    "batch_size": 32,
    "lm_loss_weight": 0.5,
    "optimizer.lr": 6.25e-5,
    "optimizer.eps": 1e-8,
    "schedule.warmup": 0.002,
    "schedule.decay": "bert",  # counted from step 0, as in their ``warmup_linear``
}
"""Radford et al. 2018, section 4.1, and openai/finetune-transformer-lm ``train.py``. Weight decay of
0.01, clipping at 1 and Adam with bias correction are the defaults here too."""


_ROBERTA: Mapping[str, object] = {
    "epochs": 10,
    "batch_size": 32,
    "optimizer.lr": 1e-5,
    "optimizer.beta2": 0.98,
    "optimizer.weight_decay": 0.1,
    "optimizer.clip_norm": 0.0,
    "schedule.warmup": 0.06,
}
"""fairseq ``examples/roberta/README.glue.md``."""


_WORD_MODEL: Mapping[str, object] = {"optimizer.weight_decay": 0.0, "optimizer.eps": 1e-8, "schedule.warmup": 0.0}
"""Settings that all word models share. The published models lowered the rate when dev stopped improving."""


_BIDAF: Mapping[str, object] = {
    **_WORD_MODEL,
    "epochs": 20,
    "batch_size": 40,
    "optimizer.lr": 1e-3,
    "optimizer.beta2": 0.9,
    "optimizer.clip_norm": 5.0,
}
"""allennlp-models ``training_config/rc/bidaf_elmo.jsonnet``."""


_BILSTM_ATTENTION: Mapping[str, object] = {
    **_WORD_MODEL,
    "epochs": 20,
    "batch_size": 128,
    "task.max_length": 83,  # two texts of 40 words
    "optimizer.lr": 1e-4,
    "optimizer.clip_norm": 5.0,
}
"""nyu-mll/GLUE-baselines ``src/main.py`` and ``src/final_exps.sh``, which have no number of epochs; 20 is ours."""


_ESIM: Mapping[str, object] = {
    **_WORD_MODEL,
    "epochs": 75,
    "batch_size": 32,
    "optimizer.lr": 4e-4,
    "optimizer.clip_norm": 10.0,
}
"""rowanz/swagaf ``swag_baselines/esim/train-elmo.json``; the epochs are its maximum."""


_TAGGER: Mapping[str, object] = {
    **_WORD_MODEL,
    "epochs": 75,
    "batch_size": 64,
    "task.crf": True,
    "task.context": False,
    "optimizer.lr": 1e-3,
    "optimizer.clip_norm": 5.0,
}
"""allennlp-models ``training_config/tagging/ner_elmo.jsonnet``; the epochs are its maximum."""


_PROFILES: Mapping[FinetuneProfile, Mapping[str, object]] = {
    "bert": {},
    "bidaf": _BIDAF,
    "bilstm_attention": _BILSTM_ATTENTION,
    "esim": _ESIM,
    "gpt": _GPT,
    "roberta": _ROBERTA,
    "tagger": _TAGGER,
}


_TASK_SETTINGS: Mapping[FinetuneProfile, Mapping[str, Mapping[str, object]]] = {
    "gpt": {task.name: {"task.both_orders": True} for task in (mrpc, qqp, stsb)},
    "roberta": {
        rte.name: {"batch_size": 16, "optimizer.lr": 2e-5},
        stsb.name: {"batch_size": 16, "optimizer.lr": 2e-5},
        mrpc.name: {"batch_size": 16},
        cola.name: {"batch_size": 16},
    },
}
"""Settings of single tasks that differ, by the name of the task."""


def finetuning_profile_settings(profile: FinetuneProfile, task: FileTask) -> dict[str, object]:
    """The published fine-tuning settings of a model that differ from the defaults, by path.

    Those of ``bert`` are the defaults. ``gpt`` reads pairs without an order in both orders.
    """
    return {**_PROFILES[profile], **_TASK_SETTINGS.get(profile, {}).get(task.name, {})}
