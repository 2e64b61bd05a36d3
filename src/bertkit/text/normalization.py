"""The rules of google-research/bert ``tokenization.py``, written with the parts of the ``tokenizers`` library.

The library has a BertNormalizer of its own. It differs from the original: it drops private-use characters, knows no
final sigma, misses 256 ideographs and takes punctuation and accents from Unicode 8. The parts below agree with the
original on every assigned character of Unicode 14, and are somewhat faster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

UnicodeForm = Literal["NFC", "NFD"]

CONTINUATION_PREFIX = "##"
"""What stands before a piece of WordPiece that is not the first of its word."""

END_OF_WORD = "</w>"
"""What stands behind a byte-pair piece that is the last of its word."""

LONGEST_WORD = 200
"""Characters; a longer word is [UNK]. The first release and Hugging Face have 100."""

_DROPPED = Regex(r"[\p{Cc}\p{Cf}\x{fffd}&&[^\t\n\r]]")
_ACCENT = Regex(r"\p{Mn}")
# Python's str.lower, which the original calls, knows one rule that depends on the neighbours (Unicode 3.13).
_FINAL_SIGMA = Regex(r"\p{Cased}\p{Case_Ignorable}*\KΣ(?!\p{Case_Ignorable}*\p{Cased})")
# All of ASCII that is no letter, digit or space counts, although Unicode calls some of it symbols.
_PUNCTUATION = r"!-/:-@\[-`{-~\p{P}"
_CHINESE = (
    r"\x{4e00}-\x{9fff}\x{3400}-\x{4dbf}\x{20000}-\x{2a6df}\x{2a700}-\x{2b73f}\x{2b740}-\x{2b81f}\x{2b820}-\x{2ceaf}"
    r"\x{f900}-\x{faff}\x{2f800}-\x{2fa1f}"
)


class SpecialTokens(NamedTuple):
    """How a vocabulary spells its special pieces."""

    pad: str = "[PAD]"
    unk: str = "[UNK]"
    cls: str = "[CLS]"
    sep: str = "[SEP]"
    mask: str = "[MASK]"


@dataclass(frozen=True, kw_only=True)
class NormalizationRules:
    """What happens to a text before pieces are looked up.

    ``form`` is a Unicode form to bring everything into at the end; None leaves what there is: for stripped accents
    that is NFD, in which Hangul stays torn into Jamo.
    """

    lowercase: bool
    strip_accents: bool
    chinese: bool = True
    form: UnicodeForm | None = None
    longest_word: int = LONGEST_WORD


def assemble(vocabulary: Mapping[str, int], rules: NormalizationRules, specials: SpecialTokens) -> Tokenizer:
    """The tokenizer with these pieces and rules; special pieces that ``vocabulary`` lacks are left out."""
    model = models.WordPiece(
        vocab=dict(vocabulary), unk_token=specials.unk, max_input_chars_per_word=rules.longest_word
    )
    backend = Tokenizer(model)
    backend.normalizer = _normalizer(rules)
    backend.pre_tokenizer = _pre_tokenizer(rules)
    backend.decoder = decoders.WordPiece(prefix=CONTINUATION_PREFIX, cleanup=True)
    if (
        specials.cls in vocabulary and specials.sep in vocabulary
    ):  # for readers of the saved file; we add them ourselves
        backend.post_processor = processors.BertProcessing(
            (specials.sep, vocabulary[specials.sep]), (specials.cls, vocabulary[specials.cls])
        )
    known = [AddedToken(piece, special=True, normalized=False) for piece in specials if piece in vocabulary]
    backend.add_special_tokens(known)
    return backend


def _normalizer(rules: NormalizationRules) -> normalizers.Sequence:
    steps: list[normalizers.Normalizer] = [normalizers.Replace(_DROPPED, "")]
    if rules.lowercase:
        steps += [normalizers.Replace(_FINAL_SIGMA, "ς"), normalizers.Lowercase()]
    if rules.strip_accents:
        steps += [normalizers.NFD(), normalizers.Replace(_ACCENT, "")]
    if rules.form is not None:
        steps.append(normalizers.NFC() if rules.form == "NFC" else normalizers.NFD())
    return normalizers.Sequence(steps)


def _pre_tokenizer(rules: NormalizationRules) -> pre_tokenizers.Sequence:
    alone = _PUNCTUATION + _CHINESE if rules.chinese else _PUNCTUATION
    return pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(Regex(f"[{alone}]"), "isolated")]
    )
