"""The rules of google-research/bert ``tokenization.py``, expressed with the components of the ``tokenizers`` library.

The BertNormalizer of the library differs from the original: it drops private-use characters, ignores final sigma,
misses 256 ideographs, and takes punctuation and accents from Unicode 8. The components below agree with the original on
every assigned character of Unicode 14, and are somewhat faster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

UnicodeForm = Literal["NFC", "NFD"]

CONTINUATION_PREFIX = "##"
"""Precedes a WordPiece subword that is not the first of its word."""

END_OF_WORD = "</w>"
"""Follows a subword of byte-pair encoding that is the last of its word."""

LONGEST_WORD = 200
"""Characters; a longer word is [UNK]. The first release and Hugging Face have 100."""

_DROPPED = r"[\p{Cc}\p{Cf}\x{fffd}&&[^\t\n\r]]"
_ACCENT = r"\p{Mn}"
# The original calls Python's str.lower, which has one rule that depends on neighbouring characters (Unicode 3.13).
_FINAL_SIGMA = r"\p{Cased}\p{Case_Ignorable}*\KΣ(?!\p{Case_Ignorable}*\p{Cased})"
PATTERNS_WITHOUT_SPACES = (_DROPPED, _ACCENT, _FINAL_SIGMA)
"""What ``Replace`` looks for in these rules. White space is in none of the matches, nor decides whether there is one
beyond it."""
# The original counts every ASCII character that is no letter, digit or space as punctuation, as also $ and +.
_PUNCTUATION = r"!-/:-@\[-`{-~\p{P}"
_CHINESE = (
    r"\x{4e00}-\x{9fff}\x{3400}-\x{4dbf}\x{20000}-\x{2a6df}\x{2a700}-\x{2b73f}\x{2b740}-\x{2b81f}\x{2b820}-\x{2ceaf}"
    r"\x{f900}-\x{faff}\x{2f800}-\x{2fa1f}"
)


class BertSpecialTokens(NamedTuple):
    """How a vocabulary spells BERT's special tokens."""

    pad: str = "[PAD]"
    unk: str = "[UNK]"
    cls: str = "[CLS]"
    sep: str = "[SEP]"
    mask: str = "[MASK]"


@dataclass(frozen=True, kw_only=True)
class NormalizationRules:
    """How a text is normalized and split into words before subwords are looked up.

    ``chinese`` separates Chinese characters. ``form`` is the Unicode form of the result; None leaves it as it is: after
    accents were stripped that is NFD, which decomposes Hangul syllables into Jamo. ``longest_word`` is in characters.
    """

    lowercase: bool
    strip_accents: bool
    chinese: bool = True
    form: UnicodeForm | None = None
    longest_word: int = LONGEST_WORD


def build_tokenizer(vocabulary: Mapping[str, int], rules: NormalizationRules, specials: BertSpecialTokens) -> Tokenizer:
    """The WordPiece tokenizer with this vocabulary and these rules; special tokens that it lacks are left out."""
    model = models.WordPiece(
        vocab=dict(vocabulary), unk_token=specials.unk, max_input_chars_per_word=rules.longest_word
    )
    backend = Tokenizer(model)
    backend.normalizer = _normalizer(rules)
    backend.pre_tokenizer = _pre_tokenizer(rules)
    backend.decoder = decoders.WordPiece(prefix=CONTINUATION_PREFIX, cleanup=True)
    # For other readers of the saved file: bertkit encodes with add_special_tokens=False and adds its own.
    if specials.cls in vocabulary and specials.sep in vocabulary:
        backend.post_processor = processors.BertProcessing(
            (specials.sep, vocabulary[specials.sep]), (specials.cls, vocabulary[specials.cls])
        )
    known = [AddedToken(token, special=True, normalized=False) for token in specials if token in vocabulary]
    backend.add_special_tokens(known)
    return backend


def _normalizer(rules: NormalizationRules) -> normalizers.Sequence:
    steps: list[normalizers.Normalizer] = [normalizers.Replace(Regex(_DROPPED), "")]
    if rules.lowercase:
        # Before Lowercase, which makes every sigma a medial one.
        steps += [normalizers.Replace(Regex(_FINAL_SIGMA), "ς"), normalizers.Lowercase()]
    if rules.strip_accents:
        steps += [normalizers.NFD(), normalizers.Replace(Regex(_ACCENT), "")]
    if rules.form is not None:
        steps.append(normalizers.NFC() if rules.form == "NFC" else normalizers.NFD())
    return normalizers.Sequence(steps)


def _pre_tokenizer(rules: NormalizationRules) -> pre_tokenizers.Sequence:
    isolated = _PUNCTUATION + _CHINESE if rules.chinese else _PUNCTUATION
    return pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(Regex(f"[{isolated}]"), "isolated")]
    )
