"""Loading the tokenizer of a folder; its files show which kind it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bertkit.contracts import SubwordTokenizer
from bertkit.storage.locations import locate_model
from bertkit.text.bert_byte_bpe import BertByteBPE
from bertkit.text.bpe import BPE
from bertkit.text.bpe_files import HUGGING_FACE, OPENAI
from bertkit.text.byte_bpe import ByteLevelBPE
from bertkit.text.normalization import END_OF_WORD, BertSpecialTokens
from bertkit.text.tokenizer_files import TOKENIZER, check_tokenizer, read_lenient
from bertkit.text.wordpiece import WordPiece
from bertkit.text.words import WordLevel


def load_tokenizer(path: Path) -> SubwordTokenizer:
    """The tokenizer at ``path``, a folder or one of its files.

    Byte-pair encoding is GPT's if the vocabulary marks the ends of words, ModernBERT's if it adds [CLS], else
    RoBERTa's; a list of words is ELMo's. Everything else is read as WordPiece, whose errors say what is wrong with it.

    A file that differs from its checksum is a data error.
    """
    path = locate_model(path)
    vocabulary, _ = HUGGING_FACE
    if path.is_file() and path.name in (TOKENIZER, *HUGGING_FACE):
        path = path.parent
    check_tokenizer(path if path.is_dir() else path.parent)
    if (path / TOKENIZER).is_file():
        content = read_lenient(path / TOKENIZER)
        model = content.get("model")
        return _find_kind(model if isinstance(model, dict) else {}, content.get("added_tokens")).load(path)
    if (path / OPENAI[0]).is_file():
        return BPE.load(path)
    if (path / vocabulary).is_file():
        # vocab.json without tokenizer.json belongs to byte-pair encoding, whose merges are in a file of their own.
        return _find_kind({"merges": [], "vocab": read_lenient(path / vocabulary)}).load(path)
    return WordPiece.load(path)


def _find_kind(
    model: Mapping[str, object], added: object = None
) -> type[WordPiece | WordLevel | BPE | ByteLevelBPE | BertByteBPE]:
    """The class for a ``tokenizer.json`` with this ``model`` and these ``added`` tokens."""
    if "merges" not in model:
        return WordLevel if model.get("type") == "WordLevel" else WordPiece
    names = [each.get("content") for each in added if isinstance(each, dict)] if isinstance(added, list) else []
    if BertSpecialTokens().cls in names:
        return BertByteBPE
    vocabulary = model.get("vocab")
    marks_ends = isinstance(vocabulary, dict) and any(token.endswith(END_OF_WORD) for token in vocabulary)
    return BPE if model.get("end_of_word_suffix") or marks_ends else ByteLevelBPE
