"""A model written as a folder that ``transformers`` loads without an export."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from bertkit._version import __version__
from bertkit.checkpoint import huggingface, huggingface_config
from bertkit.checkpoint.model_folder import CONFIG, FORMAT, METADATA
from bertkit.checkpoint.sentence_transformers import SentenceEmbedding, write_embedding
from bertkit.checkpoint.tensors import write_tensors
from bertkit.checkpoint.weights import WEIGHTS
from bertkit.contracts import Encoder, Objective, SubwordTokenizer
from bertkit.encoder_types.architectures import is_in_huggingface, spec_of_encoder
from bertkit.errors import usage_error
from bertkit.model import Model
from bertkit.storage.atomic import explain_writing, make_folder, read_json, write_folder, write_json
from bertkit.storage.checksums import write_checksums
from bertkit.text.tokenizer_files import CONFIG as TOKENIZER_CONFIG

READABLE_ELSEWHERE = "other_libraries_read"
"""The key of ``readable_elsewhere`` in ``bertkit.json``."""

WRITTEN_FACTS = frozenset({"format", "bertkit", "files", READABLE_ELSEWHERE})
"""The keys of ``bertkit.json`` that ``save_model`` writes itself."""

_CLASSIFIERS = ("classifier.weight", "classifier.out_proj.weight")
"""Names of the output layers of classifiers in Hugging Face's files; one row per class."""


def save_model(
    folder: Path,
    model: Model,
    tokenizer: SubwordTokenizer,
    *,
    metadata: Mapping[str, Any],
    embedding: SentenceEmbedding | None = None,
    add: Callable[[Path], None] | None = None,
) -> None:
    """Write a model folder completely or not at all; a model that is already there is replaced at the end.

    ``metadata`` is plain JSON; its ``["task"]["labels"]``, or without a task its ``["labels"]``, name the classes.
    ``bertkit.json`` has it, and what other libraries read of the folder. With ``embedding`` sentence-transformers loads
    the folder too. ``add`` writes more files into the folder, before it takes its place.
    """
    assert tokenizer.vocab_size <= getattr(model.encoder.config, "vocab_size", tokenizer.vocab_size)
    tensors = huggingface.tensors_to_hf(model)
    token_ids = spec_of_encoder(model.encoder).huggingface.token_ids
    config = {
        **_describe(model, tensors, metadata),
        **{key: getattr(tokenizer, attribute) for key, attribute in token_ids.items()},
    }

    def fill(temporary: Path) -> None:
        write_tensors(temporary / WEIGHTS, tensors)
        write_json(temporary / CONFIG, config)
        tokenizer.save(temporary)
        if (path := temporary / TOKENIZER_CONFIG).is_file():
            write_json(path, huggingface_config.fit_tokenizer_config(read_json(path), model.encoder.config, metadata))
        if embedding is not None:
            positions = getattr(model.encoder.config, "max_positions", None)
            write_embedding(temporary, embedding, hidden_size=model.encoder.hidden_size, positions=positions)
        write_checksums(
            temporary / METADATA,
            {"format": FORMAT, "bertkit": __version__, READABLE_ELSEWHERE: readable_elsewhere(model), **metadata},
        )
        if add is not None:
            add(temporary)

    with explain_writing(folder):
        check_model_output(folder)
        make_folder(folder.parent)
        write_folder(folder, fill)


def check_model_output(folder: Path) -> None:
    """Raise a usage error if ``folder``, where a model is to be written, is a file or holds something else."""
    if folder.exists() and not folder.is_dir():
        raise usage_error(f"{folder} is a file. Choose another -o folder.")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / CONFIG).is_file():
        raise usage_error(f"{folder} is not empty and holds no model. Choose another folder.")


def readable_elsewhere(model: Model) -> Literal["model", "encoder", "nothing"]:
    """What other libraries read of a folder with this model: all of it, or not its heads, which they have no class for.

    ``nothing`` is for encoders that only bertkit has.
    """
    if not is_in_huggingface(model.encoder.config):
        return "nothing"
    names = spec_of_encoder(model.encoder).huggingface.architectures
    alike = all(_is_alike(each, model.encoder) or not [*each.parameters()] for each in model.heads.values())
    return "model" if _heads(model) in names and alike else "encoder"


def _heads(model: Model) -> frozenset[str]:
    """The labels of the heads that Hugging Face may have a class for."""
    return frozenset(each.label for each in model.heads.values() if _is_alike(each, model.encoder))


def _is_alike(head: Objective, encoder: Encoder) -> bool:
    """Whether Hugging Face computes ``head`` as bertkit does.

    In a BERT from left to right its classes read [CLS], which sees no other token; bertkit reads the last one.
    """
    return head.in_huggingface and not (head.reads_pooled and getattr(encoder.config, "causal", False))


def _describe(model: Model, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]) -> dict[str, object]:
    """``config.json`` of a model with its heads."""
    spec = spec_of_encoder(model.encoder).huggingface
    heads = _heads(model)
    names = spec.architectures
    # Beside a head that only bertkit has, those that others know are named: the largest set that has a class.
    architectures = [names[max((known for known in names if known <= heads), key=len)]] if names else []
    config = {"architectures": architectures, **huggingface_config.config_to_hf(model.encoder.config)}
    outputs = [tensors[name] for name in _CLASSIFIERS if name in tensors]
    if heads in ({"class"}, {"labels"}, {"tags"}) and outputs:
        labels = (metadata.get("task") or metadata).get("labels")
        count = len(outputs[0])
        return config | huggingface_config.classes_to_hf(labels, count=count, several=heads == {"labels"})
    if heads == {"number"}:
        named = () if metadata.get("task") else metadata.get("labels", ())
        return config | huggingface_config.number_to_hf(*named, sigmoid=bool(metadata.get("sigmoid")))
    return config
