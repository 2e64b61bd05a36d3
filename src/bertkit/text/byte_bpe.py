"""Byte-level BPE as in RoBERTa, which has it from GPT-2 (Radford et al. 2019; RoBERTa, arXiv 1907.11692, section 4.4).

A text is split into runs of letters, digits or other characters, each with the space before it (openai/gpt-2
``encoder.py``). The bytes of a run, each written as one character, are merged pair by pair, in the order in which
training found the merges. Nothing is changed or dropped: decoding restores the text, and no text is unknown. Gotchas:

* ``fox`` at the beginning of a text and `` fox`` inside it are different subwords. The vocabulary writes the space as
  ``Ġ``; offsets exclude it. A space that is a token of its own has an empty offset after the space.
* ``<mask>``, where special tokens are recognized, includes the white space before it, unless the files of the tokenizer
  say that it does not.
* Two texts have two ``</s>`` between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from bertkit.errors import data_error, usage_error
from bertkit.text.added_tokens import AddedTokens
from bertkit.text.base import BaseTokenizer, replace_surrogates
from bertkit.text.bpe_files import HUGGING_FACE, BpeFiles, Merge, read_folder, vocabulary_and_merges
from bertkit.text.tokenizer_files import read_config
from bertkit.text.training import train_byte_bpe

_SPACE = "Ġ"
_BYTES = 256
_MASK_FLAGS = {"rstrip": False, "single_word": False, "normalized": False, "special": True}


class SpecialTokens(NamedTuple):
    """The tokens that no text becomes, in the order of fairseq's dictionary."""

    cls: str = "<s>"
    pad: str = "<pad>"
    sep: str = "</s>"
    unk: str = "<unk>"
    mask: str = "<mask>"


class ByteLevelTokenizer(BaseTokenizer):
    """A tokenizer in whose vocabulary a subword that begins a word includes the space before it."""

    cls_id: int
    sep_id: int

    def surface_form(self, id: int) -> tuple[str, bool]:
        """The characters of a subword without its space, and whether it had none, so that it continues a word."""
        return self.decode([id]).removeprefix(" "), not self.id_to_token(id).startswith(_SPACE)


class ByteLevelBPE(ByteLevelTokenizer):
    """RoBERTa's tokenizer; with ``leading_space`` a space is added to every text that does not begin with one."""

    def __init__(self, backend: Tokenizer, source: str = "the vocabulary", added: AddedTokens | None = None) -> None:
        super().__init__(backend, SpecialTokens(), model="RoBERTa", source=source, added=added)
        self.cls_id, self.pad_id, self.sep_id, self.unk_id, self.mask_id = self.tokens_to_ids(SpecialTokens())
        self.start_id, self.end_id = self.cls_id, self.sep_id
        self.between_ids = [self.sep_id, self.sep_id]  # two, as in fairseq roberta/hub_interface.py, encode

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a folder with ``tokenizer.json``, or with ``vocab.json`` and ``merges.txt``.

        ``add_prefix_space`` of ``tokenizer_config.json`` overrides that of ``tokenizer.json``, as in Hugging Face.
        """
        folder = Path(path)
        found = read_folder(folder, "RoBERTa", (HUGGING_FACE,))
        splitting = _check_rules(found)
        leading_space = read_config(folder).get("add_prefix_space", splitting.get("add_prefix_space", False))
        mask = found.added.find(SpecialTokens().mask)
        backend = _build(
            found.vocabulary,
            found.merges,
            leading_space=bool(leading_space),
            mask_takes_space=mask is None or mask.lstrip,
            source=str(found.file),
        )
        return cls(backend, str(found.file), found.added)

    def save(self, folder: Path | str) -> None:
        """Write ``tokenizer.json`` and its configuration, ``vocab.json`` and ``merges.txt``; Hugging Face reads
        them."""
        description = self._describe()
        splitting = description["pre_tokenizer"] or {}
        mask = self._added.find(SpecialTokens().mask)
        config = _config(
            leading_space=bool(splitting["add_prefix_space"]), mask_takes_space=mask is None or mask.lstrip
        )
        self._save(folder, config, vocabulary_and_merges(description))


def train(texts: Iterable[str], *, vocab_size: int = 50_265) -> ByteLevelBPE:
    """Train a vocabulary of at most ``vocab_size`` subwords, with the special tokens and the 256 bytes.

    A small corpus gives fewer. ``texts`` are read once, and only one is in memory at a time.
    """
    specials = SpecialTokens()
    smallest = len(specials) + _BYTES
    if vocab_size < smallest:
        raise usage_error(f"--vocab-size is {vocab_size}; it must be at least {smallest}: every byte is a token.")
    rules = _build({}, [], leading_space=True)
    rules.normalizer = normalizers.Sequence([])
    subwords, merges = train_byte_bpe(map(replace_surrogates, texts), rules, size=vocab_size, first=specials)
    if not merges:
        raise data_error("there is no text to train a vocabulary on: no two bytes occur together twice.")
    return ByteLevelBPE(_build({subword: id for id, subword in enumerate(subwords)}, merges))


def _check_rules(found: BpeFiles) -> Mapping[str, object]:
    """The settings of the pre-tokenizer, after checking that all rules are RoBERTa's."""
    splitting = found.rules.get("pre_tokenizer", {"type": "ByteLevel"})
    splitting = splitting if isinstance(splitting, dict) else {}
    other = [part for part in ("normalizer", "end_of_word_suffix") if found.rules.get(part) is not None]
    if splitting.get("type") != "ByteLevel" or not splitting.get("use_regex", True):
        other.append("pre_tokenizer")
    if other:
        raise data_error(f"{found.file} has another {other[0]} than RoBERTa; bertkit reads RoBERTa's only.")
    return splitting


def _build(
    vocabulary: Mapping[str, int],
    merges: Sequence[Merge],
    *,
    leading_space: bool = False,
    mask_takes_space: bool = True,
    source: str = "the vocabulary",
) -> Tokenizer:
    """The tokenizer with this vocabulary and these merges; special tokens that it lacks are left out."""
    specials = SpecialTokens()
    try:
        backend = Tokenizer(models.BPE(dict(vocabulary), list(merges)))
    except Exception as error:  # the library raises nothing narrower
        raise data_error(f"{source}: the merges do not belong to the vocabulary: {error}.") from error
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=leading_space)
    backend.decoder = decoders.ByteLevel()
    # Needed for trim_offsets, which excludes spaces from offsets. Its special tokens are for other readers of the saved
    # file: bertkit encodes with add_special_tokens=False and adds its own.
    sep, cls = ((token, vocabulary.get(token, 0)) for token in (specials.sep, specials.cls))
    backend.post_processor = processors.RobertaProcessing(sep, cls, trim_offsets=True, add_prefix_space=leading_space)
    known = [token for token in specials if token in vocabulary]
    backend.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False, lstrip=mask_takes_space and token == specials.mask)
            for token in known
        ]
    )
    return backend


def _config(*, leading_space: bool, mask_takes_space: bool) -> dict[str, object]:
    """The content of ``tokenizer_config.json``."""
    specials = SpecialTokens()
    return {
        "add_prefix_space": leading_space,
        "trim_offsets": True,
        **{f"{name}_token": token for name, token in specials._asdict().items()},
        # With its flag, because transformers 5 takes a mask without one for a token that leaves spaces alone.
        "mask_token": {"__type": "AddedToken", "content": specials.mask, "lstrip": mask_takes_space, **_MASK_FLAGS},
        "bos_token": specials.cls,
        "eos_token": specials.sep,
        "model_max_length": 512,
        "model_input_names": ["input_ids", "attention_mask"],
        "tokenizer_class": "RobertaTokenizer",
    }
