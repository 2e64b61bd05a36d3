"""Byte-level byte pairs as RoBERTa has them from GPT-2 (Radford et al. 2019; RoBERTa, arXiv 1907.11692, section 4.4).

A text is cut into runs of letters, digits or other signs, each with the space before it (openai/gpt-2 ``encoder.py``);
the bytes of a run, each spelled as a letter, are merged pair by pair in the order in which the merges were learned.
Nothing is changed or dropped: what is decoded is what was encoded, and no text is unknown. Facts that surprise:

* ``fox`` at the beginning of a text and `` fox`` inside of it are different pieces. The space is ``Ġ`` in the
  vocabulary; it is not in the offsets. A space that is a piece of its own has an empty offset behind it.
* ``<mask>``, where it is asked for, takes the white space before it.
* Two texts have two ``</s>`` between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from bertkit.errors import data_error, usage_error
from bertkit.storage.atomic import explain_writing, make_folder, read_json, write_json
from bertkit.text.base import BaseTokenizer, replace_surrogates
from bertkit.text.bpe_files import HUGGING_FACE, read_folder, write_files
from bertkit.text.tokenizer_files import CONFIG
from bertkit.text.training import train_byte_bpe

_SPACE = "Ġ"
_BYTES = 256


class SpecialTokens(NamedTuple):
    """The pieces that no text becomes, in the order of fairseq's dictionary, whose ids they have."""

    cls: str = "<s>"
    pad: str = "<pad>"
    sep: str = "</s>"
    unk: str = "<unk>"
    mask: str = "<mask>"


class ByteLevelBPE(BaseTokenizer):
    """Pieces and merges; ``leading_space`` is added to every text that begins with none."""

    cls_id: int
    sep_id: int

    def __init__(self, backend: Tokenizer, source: str = "the vocabulary") -> None:
        super().__init__(backend, SpecialTokens(), model="RoBERTa", source=source)
        self.cls_id, self.pad_id, self.sep_id, self.unk_id, self.mask_id = self.tokens_to_ids(SpecialTokens())

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a folder with ``tokenizer.json``, or with ``vocab.json`` and ``merges.txt``.

        Where ``tokenizer_config.json`` says whether texts get a leading space, it is heeded, as Hugging Face does.
        """
        folder = Path(path)
        found = read_folder(folder, "RoBERTa", (HUGGING_FACE,))
        cutting = found.rules.get("pre_tokenizer", {"type": "ByteLevel"}) or {}
        ours = {"normalizer": None, "end_of_word_suffix": None}
        others = [part for part, rule in ours.items() if found.rules.get(part) != rule]
        if cutting.get("type") != "ByteLevel" or not cutting.get("use_regex", True):
            others.append("pre_tokenizer")
        if others:
            raise data_error(f"{found.file} has another {others[0]} than RoBERTa; bertkit reads RoBERTa's alone.")
        if strange := [piece for piece in found.added if piece not in SpecialTokens()]:
            raise data_error(
                f"{found.file} has the added piece {strange[0]}; bertkit knows of {', '.join(SpecialTokens())}."
            )
        config = read_json(folder / CONFIG) if (folder / CONFIG).is_file() else {}
        leading_space = config.get("add_prefix_space", cutting.get("add_prefix_space", False))
        backend = _assemble(found.vocabulary, found.merges, leading_space=leading_space, source=str(found.file))
        return cls(backend, str(found.file))

    def save(self, folder: Path) -> None:
        """Write ``tokenizer.json`` and its configuration, ``vocab.json`` and ``merges.txt``, for Hugging Face too."""
        description = self._description()
        with explain_writing(folder):
            make_folder(folder)
            write_files(folder, description)
            write_json(folder / CONFIG, _config(leading_space=description["pre_tokenizer"]["add_prefix_space"]))

    @property
    def between_ids(self) -> list[int]:
        """Two ``</s>`` (fairseq ``roberta/hub_interface.py``, ``encode``)."""
        return [self.sep_id, self.sep_id]

    def surface_form(self, id: int) -> tuple[str, bool]:
        """The letters of a piece without its space, and whether it had none."""
        return self.decode([id]).removeprefix(" "), not self.id_to_token(id).startswith(_SPACE)


def train(texts: Iterable[str], *, vocab_size: int = 50_265) -> ByteLevelBPE:
    """Learn at most ``vocab_size`` pieces, special ones and the 256 bytes included; a small corpus gives fewer.

    ``texts`` are read once, and one is in memory at a time.
    """
    specials = SpecialTokens()
    smallest = len(specials) + _BYTES
    if vocab_size < smallest:
        raise usage_error(f"--vocab-size is {vocab_size}; it must be {smallest} or more: every byte is a piece.")
    rules = _assemble({}, [], leading_space=True)
    rules.normalizer = normalizers.Sequence([])
    pieces, merges = train_byte_bpe(map(replace_surrogates, texts), rules, size=vocab_size, first=specials)
    if not merges:
        raise data_error("there is no text to learn a vocabulary from: no two bytes stand together twice.")
    return ByteLevelBPE(_assemble({piece: number for number, piece in enumerate(pieces)}, merges))


def _assemble(
    vocabulary: Mapping[str, int],
    merges: Sequence[tuple[str, str]],
    *,
    leading_space: bool = False,
    source: str = "the vocabulary",
) -> Tokenizer:
    """The tokenizer with these pieces and merges; special pieces that ``vocabulary`` lacks are left out."""
    specials = SpecialTokens()
    try:
        backend = Tokenizer(models.BPE(dict(vocabulary), list(merges)))
    except Exception as error:  # the library raises nothing narrower
        raise data_error(f"{source}: the merges do not belong to the vocabulary: {error}.") from error
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=leading_space)
    backend.decoder = decoders.ByteLevel()
    # It takes the spaces off the offsets; the ends are for readers of the saved file, we add them ourselves.
    sep, cls = ((piece, vocabulary.get(piece, 0)) for piece in (specials.sep, specials.cls))
    backend.post_processor = processors.RobertaProcessing(sep, cls, trim_offsets=True, add_prefix_space=leading_space)
    known = [piece for piece in specials if piece in vocabulary]
    backend.add_special_tokens(
        [AddedToken(piece, special=True, normalized=False, lstrip=piece == specials.mask) for piece in known]
    )
    return backend


def _config(*, leading_space: bool) -> dict[str, Any]:
    """The content of ``tokenizer_config.json``."""
    specials = SpecialTokens()
    return {
        "add_prefix_space": leading_space,
        "trim_offsets": True,
        **{f"{name}_token": piece for name, piece in specials._asdict().items()},
        "bos_token": specials.cls,
        "eos_token": specials.sep,
        "model_max_length": 512,
        "model_input_names": ["input_ids", "attention_mask"],
        "tokenizer_class": "RobertaTokenizer",
    }
