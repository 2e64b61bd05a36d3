"""The setting that is meant by a name that no record has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bertkit.errors import find_nearest

SYNONYMS: Mapping[str, str] = {
    "adam_beta1": "beta1",
    "adam_beta2": "beta2",
    "adam_epsilon": "eps",
    "attention_probs_dropout_prob": "attention_dropout",
    "bf16": "precision",
    "epsilon": "eps",
    "fp16": "precision",
    "gradient_accumulation_steps": "micro_batch_size",
    "hidden_dropout_prob": "dropout",
    "learning_rate": "lr",
    "max_grad_norm": "clip_norm",
    "max_position_embeddings": "max_positions",
    "max_seq_length": "max_length",
    "max_steps": "steps",
    "mlm_probability": "rate",
    "num_attention_heads": "num_heads",
    "num_epochs": "epochs",
    "num_hidden_layers": "num_layers",
    "num_train_epochs": "epochs",
    "per_device_train_batch_size": "batch_size",
    "random_seed": "seed",
    "train_batch_size": "batch_size",
    "warmup_proportion": "warmup",
    "warmup_ratio": "warmup",
    "warmup_steps": "warmup",
}
"""Names that other libraries have for a setting -> the last part of its path here."""


def explain_unknown(path: str, known: Sequence[str]) -> str:
    """What is wrong with a key that no record has, and the setting that may be meant."""
    return f"unknown key {path}.{_nearest(path, known)}"


def _nearest(path: str, known: Sequence[str]) -> str:
    """The setting that other libraries call ``path``, or the nearest spelling, also in the wrong place."""
    folder, _, name = path.rpartition(".")
    in_folder = {each: each.rpartition(".")[2] for each in known if each.rpartition(".")[0] == folder}
    elsewhere = {each: each.rpartition(".")[2] for each in known}
    if (same := SYNONYMS.get(name)) in elsewhere.values():
        return f" Did you mean {next(each for each, last in (in_folder | elsewhere).items() if last == same)}?"
    for candidates in (in_folder, elsewhere):
        if near := find_nearest(name, candidates.values()):
            return f" Did you mean {next(each for each, last in candidates.items() if last == near)}?"
    return ""
