"""What the paper concludes from its tables, as comparisons of two rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bertkit.reproduction.paper import PaperTable


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A conclusion of the paper: the row ``better`` of a table scores higher than the row ``worse``.

    It is about the ``columns``, or about all columns with a score on dev if none is named.
    """

    text: str
    better: str
    worse: str
    columns: tuple[str, ...] = ()


_BERT_OVER_SMALLER = Claim(text="A larger BERT is better", better="BERT-Large", worse="BERT-Base")

CLAIMS: Mapping[str, tuple[Claim, ...]] = {
    "table1": (
        Claim(text="BERT is better than GPT of the same size", better="BERT-Base", worse="OpenAI GPT"),
        Claim(text="BERT is better than a BiLSTM on ELMo", better="BERT-Base", worse="BiLSTM+ELMo+Attn"),
        _BERT_OVER_SMALLER,
    ),
    "table2": (
        Claim(text="BERT is better than BiDAF on ELMo", better="BERT-Base (Single)", worse="BiDAF+ELMo (Single)"),
    ),
    "table4": (
        Claim(text="BERT is better than ESIM on ELMo", better="BERT-Base", worse="ESIM+ELMo"),
        _BERT_OVER_SMALLER,
    ),
    "table5": (
        Claim(
            text="Predicting masked words is better than predicting the next word, after the same number of steps",
            better="No NSP",
            worse="LTR & No NSP",
        ),
        Claim(
            text="Next-sentence prediction helps",
            better="BERT-Base",
            worse="No NSP",
            columns=("MNLI-m", "QNLI", "SQuAD F1"),
        ),
        Claim(
            text="A BiLSTM on top helps the left-to-right network to find answers",
            better="+ BiLSTM",
            worse="LTR & No NSP",
            columns=("SQuAD F1",),
        ),
        Claim(
            text="A BiLSTM on top hurts the left-to-right network on GLUE",
            better="LTR & No NSP",
            worse="+ BiLSTM",
            columns=("MNLI-m", "QNLI", "MRPC", "SST-2"),
        ),
    ),
    "table6": (
        Claim(
            text="Twelve layers are better than three, also with little training data",
            better="L=12, H=768, A=12",
            worse="L=3, H=768, A=12",
        ),
        Claim(text="A larger BERT is better", better="L=24, H=1024, A=16", worse="L=12, H=768, A=12"),
    ),
    "table7": (
        Claim(
            text="Fine-tuning is better than the best features",
            better="Fine-tuning BERT-Base",
            worse="Features: Concat Last Four Hidden",
        ),
        Claim(
            text="The last four layers are better features than the embeddings",
            better="Features: Concat Last Four Hidden",
            worse="Features: Embeddings",
        ),
        Claim(text="BERT is better than ELMo", better="Fine-tuning BERT-Base", worse="ELMo"),
    ),
    "table8": (
        Claim(
            text="Always using [MASK] is worse where the layers are features",
            better="MASK 80, SAME 10, RND 10",
            worse="MASK 100, SAME 0, RND 0",
            columns=("NER features",),
        ),
        Claim(text="Random words alone are worse", better="MASK 80, SAME 10, RND 10", worse="MASK 0, SAME 0, RND 100"),
    ),
    "budget": (
        Claim(
            text="Predicting masked words is better than predicting the next word, with the same FLOP",
            better="BERT-Base",
            worse="LTR & No NSP, same FLOP",
        ),
    ),
}
"""The claims by the name of their table."""


def find_claims(table: PaperTable) -> tuple[Claim, ...]:
    """What the paper concludes from ``table``."""
    return _compare_curves(table) if table.curves else CLAIMS.get(table.name, ())


def _compare_curves(table: PaperTable) -> tuple[Claim, ...]:
    """Figure 5: the first and the last point of the first curve, and the first points of both."""
    masked, left_to_right = ([row.name for row in table.rows if row.name.startswith(each)] for each in table.curves)
    steps = Claim(text="More steps are better", better=masked[-1], worse=masked[0])
    start = Claim(
        text="Masked words are ahead of left to right almost at once", better=masked[0], worse=left_to_right[0]
    )
    return (steps, start) if len(masked) > 1 else ()
