"""Byte-level BPE with BERT's special tokens: the tokenizer of the published ModernBERT.

Its ``tokenizer.json`` is used with the rules that it contains. As with RoBERTa (``byte_bpe.py``) a subword that begins
a word includes the space before it, which offsets exclude; as with BERT a row is ``[CLS] A [SEP] B [SEP]``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

from tokenizers import processors

from bertkit.errors import data_error
from bertkit.storage.atomic import read_json
from bertkit.text.added_tokens import AddedTokens, read_added_tokens, unmark_added
from bertkit.text.backend import build_backend
from bertkit.text.byte_bpe import ByteLevelTokenizer
from bertkit.text.normalization import BertSpecialTokens
from bertkit.text.tokenizer_files import TOKENIZER, Description, read_config


class BertByteBPE(ByteLevelTokenizer):
    """ModernBERT's tokenizer, from the ``description`` that is the content of its ``tokenizer.json``."""

    def __init__(self, description: Description, source: str, added: AddedTokens | None = None) -> None:
        listed = unmark_added(description.get("added_tokens"), BertSpecialTokens())
        backend = build_backend({**description, "added_tokens": listed}, source)
        # It would add special tokens, which bertkit adds itself; this one excludes spaces from offsets.
        backend.post_processor = processors.ByteLevel(trim_offsets=True)
        super().__init__(backend, BertSpecialTokens(), model="ModernBERT", source=source, added=added)
        self._description: Description = {**description, "truncation": None, "padding": None}
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = self.tokens_to_ids(BertSpecialTokens())
        self.start_id, self.between_ids, self.end_id = self.cls_id, [self.sep_id], self.sep_id

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read the ``tokenizer.json`` of a folder."""
        file = Path(path) / TOKENIZER
        description = read_json(file)
        splitting = description.get("pre_tokenizer") if isinstance(description, dict) else None
        if not isinstance(splitting, dict) or splitting.get("type") != "ByteLevel":
            raise data_error(f"{file} does not split text into bytes; bertkit reads ModernBERT's byte-level BPE only.")
        config = read_config(file.parent)
        model = description.get("model")
        vocabulary = model.get("vocab") if isinstance(model, dict) else None
        known = vocabulary if isinstance(vocabulary, dict) else {}  # a file without one is refused by the constructor
        added = read_added_tokens(file.parent, config, description.get("added_tokens"), known)
        return cls(description, str(file), added)

    def save(self, folder: Path | str) -> None:
        """Write ``tokenizer.json`` as it was read, with all added tokens and without truncation or padding, and its
        configuration; Hugging Face reads them."""
        specials = {f"{name}_token": token for name, token in BertSpecialTokens()._asdict().items()}
        inputs = ["input_ids", "attention_mask"]
        config = {**specials, "model_input_names": inputs, "tokenizer_class": "PreTrainedTokenizerFast"}
        self._save(folder, config, {})

    def _describe(self) -> Description:
        """The content that was read, with the tokens that other files of the folder add, and their flags."""
        special = {*BertSpecialTokens(), *self._added.special}
        listed = super()._describe()["added_tokens"]
        for token in listed:
            token["special"] = token["content"] in special
        return {**self._description, "added_tokens": listed}
