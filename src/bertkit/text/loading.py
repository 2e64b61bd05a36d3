"""Which tokenizer a folder holds: the kinds of ``text/`` tell themselves by their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bertkit.contracts import SubwordTokenizer
from bertkit.storage.atomic import read_json
from bertkit.text.bpe import BPE
from bertkit.text.byte_bpe import ByteLevelBPE
from bertkit.text.wordpiece import WordPiece
from bertkit.text.words import WordLevel

_RULES = "tokenizer.json"
_PIECES = "vocab.json"
_OPENAI = "encoder_bpe_40000.json"
_WORD_END = "</w>"


def load_tokenizer(path: Path) -> SubwordTokenizer:
    """The tokenizer at ``path``, a folder; of WordPiece also one of its files.

    Byte pairs whose vocabulary marks the ends of words are GPT's, others RoBERTa's; a list of words is ELMo's.
    Whatever is not known for another kind is read as WordPiece, which says what is wrong with it.
    """
    if (path / _RULES).is_file():
        model = _read(path / _RULES).get("model")
        return _find_kind(model if isinstance(model, dict) else {}).load(path)
    if (path / _OPENAI).is_file():
        return BPE.load(path)
    if (path / _PIECES).is_file():
        return _find_kind({"merges": [], "vocab": _read(path / _PIECES)}).load(path)
    return WordPiece.load(path)


def _find_kind(model: dict[str, Any]) -> type[WordPiece | WordLevel | BPE | ByteLevelBPE]:
    """The kind that has such a ``model`` in its ``tokenizer.json``."""
    if "merges" not in model:
        return WordLevel if model.get("type") == "WordLevel" else WordPiece
    marked = any(piece.endswith(_WORD_END) for piece in model.get("vocab", ()))
    return BPE if model.get("end_of_word_suffix") or marked else ByteLevelBPE


def _read(file: Path) -> dict[str, Any]:
    content = read_json(file)
    return content if isinstance(content, dict) else {}
