"""What a folder of sentence-transformers says beside the model: how the vector of a text is made.

bertkit writes the form that sentence-transformers before 5.4 and text-embeddings-inference read too: ``modules.json``,
one flag per kind of pooling, ``max_seq_length``. It also reads the compact form that newer versions write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from bertkit.errors import data_error
from bertkit.nn.text_pooling import Pooling
from bertkit.storage.atomic import read_json, read_object, write_json
from bertkit.text.loading import load_tokenizer

MODULES = "modules.json"

_POOLING_FOLDER = "1_Pooling"
_NORMALIZE_FOLDER = "2_Normalize"
_CONFIG = "config.json"
_TRANSFORMER_CONFIG = "sentence_bert_config.json"
_MODEL_CONFIG = "config_sentence_transformers.json"
_TOKENIZER_CONFIG = "tokenizer_config.json"

_FLAGS: Mapping[str, str] = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}
"""The compact name of each kind of pooling, and its flag in the other form."""

_POOLINGS: Mapping[str, Pooling] = {"cls": "cls", "mean": "mean", "max": "max"}
_DEFAULT_MODEL_CONFIG: Mapping[str, Any] = {
    "prompts": {"query": "", "document": ""},
    "default_prompt_name": None,
    "similarity_fn_name": "cosine",
}
_LETTERS = " ".join(ascii_uppercase)
_LONGEST = 1_000_000
"""A larger ``model_max_length`` is how transformers writes that there is no limit."""


@dataclass(frozen=True, kw_only=True)
class SentenceEmbedding:
    """How the vector of a text is made from the states of the last layer.

    ``pool`` is over all tokens, [CLS] and [SEP] included. With ``normalize`` vectors have length 1. A text keeps its
    first ``max_length`` tokens; None is as many as the encoder has positions. ``model_config`` has the measure
    of similarity, which sentence-transformers alone reads, and the prompts, of which a request to the server may name
    one; both are written again. Without ``include_prompt`` the tokens of a prompt are no part of the pooling, which
    bertkit cannot do: it is written again, and such a prompt is refused.
    """

    pool: Pooling = "mean"
    normalize: bool = False
    max_length: int | None = None
    model_config: Mapping[str, Any] = field(default_factory=dict, compare=False)
    include_prompt: bool = field(default=True, compare=False)


def read_embedding(folder: Path) -> SentenceEmbedding | None:
    """What the folder says; None for one of another library, and for that of a CrossEncoder, which makes no vectors.

    Raises a data error for a kind of pooling, a module, a prompt or a lower-casing that bertkit does not have: vectors
    would differ.
    """
    if not (folder / MODULES).is_file():
        return None
    kinds = _read_modules(folder / MODULES)
    if kinds == ["Transformer"]:
        return None
    if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
        raise data_error(
            f"{folder / MODULES} has the modules {', '.join(kinds)}; bertkit makes vectors of Transformer, Pooling and "
            "Normalize."
        )
    content = read_object(folder / _MODEL_CONFIG, missing_ok=True)
    _refuse_prompt(folder / _MODEL_CONFIG, content)
    _refuse_lower_casing(folder)
    file = folder / _POOLING_FOLDER / _CONFIG
    pooling = read_object(file)
    return SentenceEmbedding(
        pool=_find_pooling(file, pooling),
        normalize="Normalize" in kinds,
        max_length=_read_max_length(folder),
        model_config={name: content[name] for name in _DEFAULT_MODEL_CONFIG if name in content},
        include_prompt=pooling.get("include_prompt") is not False,
    )


def write_embedding(folder: Path, embedding: SentenceEmbedding, *, hidden_size: int, positions: int | None) -> None:
    """Write the files into a model folder whose encoder is ``hidden_size`` wide and reads ``positions`` tokens."""
    places = [("", "Transformer"), (_POOLING_FOLDER, "Pooling")]
    if embedding.normalize:
        places.append((_NORMALIZE_FOLDER, "Normalize"))
        (folder / _NORMALIZE_FOLDER).mkdir()
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (path, kind) in enumerate(places)
    ]
    write_json(folder / MODULES, modules)
    (folder / _POOLING_FOLDER).mkdir()
    flags = {flag: kind == embedding.pool for kind, flag in _FLAGS.items()}
    pooling = {"word_embedding_dimension": hidden_size, **flags, "include_prompt": embedding.include_prompt}
    write_json(folder / _POOLING_FOLDER / _CONFIG, pooling)
    # False leaves upper case to the tokenizer; True would lower-case for a second time.
    transformer = {"max_seq_length": embedding.max_length or positions, "do_lower_case": False}
    write_json(folder / _TRANSFORMER_CONFIG, transformer)
    write_json(folder / _MODEL_CONFIG, {**_DEFAULT_MODEL_CONFIG, **embedding.model_config})


def applies_sigmoid(folder: Path, config: Mapping[str, Any]) -> bool:
    """Whether a sigmoid belongs to the only output of the model in ``folder`` with this ``config.json``.

    That is the default of CrossEncoder. Another function is named in a file of its own since version 5, before that in
    ``config.json``. Where none is named, a model for regression has none.
    """
    newest = read_object(folder / _MODEL_CONFIG, missing_ok=True)
    older = config.get("sentence_transformers")
    candidates = [newest, older if isinstance(older, dict) else {}]
    named = [each["activation_fn"] for each in candidates if each.get("activation_fn") is not None]
    named.append(config.get("sbert_ce_default_activation_function"))
    if named[0] is None:
        return config.get("problem_type") != "regression"
    return str(named[0]).endswith("Sigmoid")


def _read_modules(file: Path) -> list[str]:
    """The kinds of the modules. Their paths are not followed: the files have fixed names."""
    content = read_json(file)
    modules = content if isinstance(content, list) else []
    kinds = [each.get("type") for each in modules if isinstance(each, dict)]
    if not kinds or not all(isinstance(kind, str) for kind in kinds):
        raise data_error(f"{file} is not a list of modules.")
    return [str(kind).rpartition(".")[2] for kind in kinds]


def _find_pooling(file: Path, content: Mapping[str, Any]) -> Pooling:
    named = content.get("pooling_mode")
    kinds = named if isinstance(named, list) else [named]
    if named is None:
        kinds = [kind for kind, flag in _FLAGS.items() if content.get(flag)] or ["mean"]
    if len(kinds) != 1 or str(kinds[0]) not in _POOLINGS:
        raise data_error(f"{file}: the pooling is {' and '.join(map(str, kinds))}; bertkit has {', '.join(_POOLINGS)}.")
    return _POOLINGS[str(kinds[0])]


def _read_max_length(folder: Path) -> int | None:
    for name, key in ((_TRANSFORMER_CONFIG, "max_seq_length"), (_TOKENIZER_CONFIG, "model_max_length")):
        value = read_object(folder / name, missing_ok=True).get(key)
        if isinstance(value, int) and 2 < value <= _LONGEST:
            return value
    return None


def _refuse_lower_casing(folder: Path) -> None:
    """Raise a data error if texts are lower-cased before a tokenizer that would keep upper case."""
    file = folder / _TRANSFORMER_CONFIG
    if not read_object(file, missing_ok=True).get("do_lower_case"):
        return
    tokenizer = load_tokenizer(folder)
    if tokenizer.encode(_LETTERS).ids != tokenizer.encode(_LETTERS.lower()).ids:
        raise data_error(
            f"{file}: do_lower_case is true, and the tokenizer keeps upper case, which bertkit passes on. Give every "
            "text in lower case, and set do_lower_case to false."
        )


def _refuse_prompt(file: Path, content: Mapping[str, Any]) -> None:
    prompts, name = content.get("prompts"), content.get("default_prompt_name")
    if isinstance(prompts, dict) and isinstance(name, str) and prompts.get(name):
        raise data_error(
            f'{file}: the default prompt is "{prompts[name]}", which bertkit does not add. Put it before every text, '
            "and set default_prompt_name to null."
        )
