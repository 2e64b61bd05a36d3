"""The tables of BERT's paper (arXiv 1810.04805v2) and its Figure 5: what is asked of whom, and what the paper found.

Figures are the paper's, in per cent where they are shares. None is what it does not report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from bertkit.errors import did_you_mean, usage_error

PERPLEXITY, AVERAGE, HIDDEN = "perplexity", "average", "hidden"
"""Columns that no fine-tuning is asked for: measured on the held-out text of pre-training; the mean of the columns
before it; of test files whose answers nobody has.
"""


class Column(NamedTuple):
    """``score`` of the answers to ``question``, a name of ``_questions.py``, on dev."""

    name: str
    question: str
    score: str = "accuracy"


@dataclass(frozen=True, kw_only=True)
class Row:
    """A system under its name in the paper, with the paper's figures in the order of the columns.

    ``contender`` is a name of ``_contenders.py``; without one the row is the paper's alone. ``question`` takes the
    place of that of every column.
    """

    name: str
    paper: tuple[float | None, ...]
    contender: str | None = None
    question: str | None = None


@dataclass(frozen=True, kw_only=True)
class Table:
    """``note`` says what the figures are not. With ``curves`` the rows are points over steps of pre-training."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = ""
    curves: tuple[str, ...] = ()


_GLUE = (
    Column("MNLI-m", "mnli"),
    Column("MNLI-mm", "mnli", "accuracy_mismatched"),
    Column("QQP", "qqp", "f1"),
    Column("QNLI", "qnli"),
    Column("SST-2", "sst2"),
    Column("CoLA", "cola", "matthews"),
    Column("STS-B", "stsb", "spearman"),
    Column("MRPC", "mrpc", "f1"),
    Column("RTE", "rte"),
    Column("Average", AVERAGE),
)
"""The score that the paper gives for each task (section 4.1)."""

_TEST_SPANS = (Column("test EM", HIDDEN), Column("test F1", HIDDEN))


def _absent(count: int) -> tuple[None, ...]:
    return (None,) * count


TABLE_1 = Table(
    name="table1",
    title="GLUE",
    columns=_GLUE,
    rows=(
        Row(name="Pre-OpenAI SOTA", paper=(80.6, 80.1, 66.1, 82.3, 93.2, 35.0, 81.0, 86.0, 61.7, 74.0)),
        Row(
            name="BiLSTM+ELMo+Attn",
            paper=(76.4, 76.1, 64.8, 79.8, 90.4, 36.0, 73.3, 84.9, 56.8, 71.0),
            contender="bilstm-elmo-attn",
        ),
        Row(name="OpenAI GPT", paper=(82.1, 81.4, 70.3, 87.4, 91.3, 45.4, 80.0, 82.3, 56.0, 75.1), contender="gpt"),
        Row(
            name="BERT-Base", paper=(84.6, 83.4, 71.2, 90.5, 93.5, 52.1, 85.8, 88.9, 66.4, 79.6), contender="bert-base"
        ),
        Row(
            name="BERT-Large",
            paper=(86.7, 85.9, 72.1, 92.7, 94.9, 60.5, 86.5, 89.3, 70.1, 82.1),
            contender="bert-large",
        ),
        Row(name="RoBERTa, of BERT-Base's size", paper=_absent(10), contender="roberta"),
    ),
    note="The paper's figures are those of GLUE's server on test; ours are measured on dev.",
)

TABLE_2 = Table(
    name="table2",
    title="SQuAD 1.1",
    columns=(Column("dev EM", "squad1", "exact_match"), Column("dev F1", "squad1", "f1"), *_TEST_SPANS),
    rows=(
        Row(name="Human", paper=(None, None, 82.3, 91.2)),
        Row(name="#1 Ensemble - nlnet", paper=(None, None, 86.0, 91.7)),
        Row(name="#2 Ensemble - QANet", paper=(None, None, 84.5, 90.5)),
        Row(name="BiDAF", paper=_absent(4), contender="bidaf"),
        Row(name="BiDAF+ELMo (Single)", paper=(None, 85.6, None, 85.8), contender="bidaf-elmo"),
        Row(name="R.M. Reader (Ensemble)", paper=(81.2, 87.9, 82.3, 88.5)),
        Row(name="BERT-Base (Single)", paper=(80.8, 88.5, None, None), contender="bert-base"),
        Row(name="BERT-Large (Single)", paper=(84.1, 90.9, None, None), contender="bert-large"),
        Row(name="BERT-Large (Ensemble)", paper=(85.8, 91.8, None, None)),
        Row(name="BERT-Large (Sgl.+TriviaQA)", paper=(84.2, 91.1, 85.1, 91.8)),
        Row(name="BERT-Large (Ens.+TriviaQA)", paper=(86.2, 92.2, 87.4, 93.2)),
    ),
    note="Without a figure of ours are other people's systems, ensembles, and those that also learn from TriviaQA.",
)

TABLE_3 = Table(
    name="table3",
    title="SQuAD 2.0",
    columns=(Column("dev EM", "squad2", "exact"), Column("dev F1", "squad2", "f1"), *_TEST_SPANS),
    rows=(
        Row(name="Human", paper=(86.3, 89.0, 86.9, 89.5)),
        Row(name="#1 Single - MIR-MRC (F-Net)", paper=(None, None, 74.8, 78.0)),
        Row(name="#2 Single - nlnet", paper=(None, None, 74.2, 77.1)),
        Row(name="unet (Ensemble)", paper=(None, None, 71.4, 74.9)),
        Row(name="SLQA+ (Single)", paper=(None, None, 71.4, 74.4)),
        Row(name="BERT-Base (Single)", paper=_absent(4), contender="bert-base"),
        Row(name="BERT-Large (Single)", paper=(78.7, 81.9, 80.0, 83.1), contender="bert-large"),
    ),
)

TABLE_4 = Table(
    name="table4",
    title="SWAG",
    columns=(Column("dev", "swag"), Column("test", HIDDEN)),
    rows=(
        Row(name="ESIM+GloVe", paper=(51.9, 52.7), contender="esim-glove"),
        Row(name="ESIM+ELMo", paper=(59.1, 59.2), contender="esim-elmo"),
        Row(name="OpenAI GPT", paper=(None, 78.0), contender="gpt"),
        Row(name="BERT-Base", paper=(81.6, None), contender="bert-base"),
        Row(name="BERT-Large", paper=(86.6, 86.3), contender="bert-large"),
        Row(name="Human (expert)", paper=(None, 85.0)),
        Row(name="Human (5 annotations)", paper=(None, 88.0)),
    ),
)

TABLE_5 = Table(
    name="table5",
    title="What the tasks of pre-training are worth",
    columns=(
        Column("MNLI-m", "mnli"),
        Column("QNLI", "qnli"),
        Column("MRPC", "mrpc"),
        Column("SST-2", "sst2"),
        Column("SQuAD F1", "squad1", "f1"),
    ),
    rows=(
        Row(name="BERT-Base", paper=(84.4, 88.4, 86.7, 92.7, 88.5), contender="bert-base"),
        Row(name="No NSP", paper=(83.9, 84.9, 86.5, 92.6, 87.9), contender="no-nsp"),
        Row(name="LTR & No NSP", paper=(82.1, 84.3, 77.5, 92.1, 77.8), contender="ltr"),
        Row(name="+ BiLSTM", paper=(82.1, 84.1, 75.7, 91.6, 84.9), contender="ltr+bilstm"),
    ),
)

_SIZES: tuple[tuple[int, int, int, tuple[float, float, float, float]], ...] = (
    (3, 768, 12, (5.84, 77.9, 79.8, 88.4)),
    (6, 768, 3, (5.24, 80.6, 82.2, 90.7)),
    (6, 768, 12, (4.68, 81.9, 84.8, 91.3)),
    (12, 768, 12, (3.99, 84.4, 86.7, 92.9)),
    (12, 1024, 16, (3.54, 85.7, 86.9, 93.3)),
    (24, 1024, 16, (3.23, 86.6, 87.8, 93.7)),
)

SIZE_NAMES = ("size-1", "size-2", "size-3", "bert-base", "size-5", "bert-large")
"""Systems of Table 6, from the smallest to the largest."""

TABLE_6 = Table(
    name="table6",
    title="Size",
    columns=(
        Column("LM ppl", PERPLEXITY),
        Column("MNLI-m", "mnli"),
        Column("MRPC", "mrpc"),
        Column("SST-2", "sst2"),
    ),
    rows=tuple(
        Row(name=f"L={layers}, H={width}, A={heads}", paper=paper, contender=contender)
        for (layers, width, heads, paper), contender in zip(_SIZES, SIZE_NAMES, strict=True)
    ),
)

_FEATURES = (
    ("Embeddings", 91.0, "embeddings"),
    ("Second-to-Last Hidden", 95.6, "second-to-last"),
    ("Last Hidden", 94.9, "last"),
    ("Weighted Sum Last Four Hidden", 95.9, "sum-last-four"),
    ("Concat Last Four Hidden", 96.1, "concat-last-four"),
    ("Weighted Sum All 12 Layers", 95.5, "sum-all"),
)

TABLE_7 = Table(
    name="table7",
    title="CoNLL-2003",
    columns=(Column("dev F1", "ner", "f1"), Column("test F1", HIDDEN)),
    rows=(
        Row(name="ELMo", paper=(95.7, 92.2), contender="elmo-crf"),
        Row(name="CVT", paper=(None, 92.6)),
        Row(name="CSE", paper=(None, 93.1)),
        Row(name="Fine-tuning BERT-Large", paper=(96.6, 92.8), contender="bert-large"),
        Row(name="Fine-tuning BERT-Base", paper=(96.4, 92.4), contender="bert-base"),
        *(
            Row(name=f"Features: {name}", paper=(paper, None), contender="bert-base", question=f"ner:{features}")
            for name, paper, features in _FEATURES
        ),
    ),
)

_MASKINGS = (
    (80, 10, 10, (84.2, 95.4, 94.9)),
    (100, 0, 0, (84.3, 94.9, 94.0)),
    (80, 0, 20, (84.1, 95.2, 94.6)),
    (80, 20, 0, (84.4, 95.2, 94.7)),
    (0, 20, 80, (83.7, 94.8, 94.6)),
    (0, 0, 100, (83.6, 94.9, 94.6)),
)


def name_masking(mask: int, same: int, random: int) -> str:
    """The contender that hides pieces so; the first mixture is BERT's own."""
    return "bert-base" if (mask, same, random) == (80, 10, 10) else f"masks-{mask}-{same}-{random}"


MASKINGS: Mapping[str, tuple[int, int, int]] = {
    name_masking(mask, same, random): (mask, same, random) for mask, same, random, _ in _MASKINGS[1:]
}
"""Per cent of the chosen pieces that are hidden, kept, and replaced at random, of the contenders of Table 8."""

TABLE_8 = Table(
    name="table8",
    title="What stands in the place of a chosen piece",
    columns=(
        Column("MNLI", "mnli"),
        Column("NER fine-tune", "ner", "f1"),
        Column("NER features", "ner:concat-last-four", "f1"),
    ),
    rows=tuple(
        Row(name=f"MASK {mask}, SAME {same}, RND {random}", paper=paper, contender=name_masking(mask, same, random))
        for mask, same, random, paper in _MASKINGS
    ),
)


def draw_figure_5(snapshots: int) -> Table:
    """Both curves of Figure 5 at so many points each, evenly spread over the steps."""
    curves = {"bert-base": "BERT-Base (masked LM)", "ltr": "Left to right"}
    return Table(
        name="figure5",
        title="MNLI after so many steps of pre-training",
        columns=(Column("MNLI-m", "mnli"),),
        rows=tuple(
            Row(name=f"{curve}, {place}/{snapshots}", paper=(None,), contender=f"{model}@{place}")
            for model, curve in curves.items()
            for place in range(1, snapshots + 1)
        ),
        note="The paper draws curves and prints no figures: 1M steps are almost 1.0 above 500k, and the masked "
        "language model is above the left-to-right one almost at once.",
        curves=tuple(curves.values()),
    )


BUDGET = Table(
    name="budget",
    title="Is it the method or the budget?",
    columns=(
        Column("MNLI-m", "mnli"),
        Column("QNLI", "qnli"),
        Column("MRPC", "mrpc"),
        Column("SST-2", "sst2"),
    ),
    rows=(
        Row(name="BERT-Base", paper=_absent(4), contender="bert-base"),
        Row(name="LTR & No NSP, as many steps", paper=_absent(4), contender="ltr"),
        Row(name="LTR & No NSP, as many FLOP", paper=_absent(4), contender="ltr=flop"),
        Row(name="OpenAI GPT, as many parameters and steps", paper=_absent(4), contender="gpt"),
        Row(name="OpenAI GPT, as many FLOP", paper=_absent(4), contender="gpt=flop"),
        Row(name="RoBERTa, as many parameters and steps", paper=_absent(4), contender="roberta"),
        Row(name="RoBERTa, as many FLOP", paper=_absent(4), contender="roberta=flop"),
        Row(name="BiLSTM+ELMo+Attn, as many parameters", paper=_absent(4), contender="bilstm-elmo-attn=parameters"),
        Row(name="BiLSTM+ELMo+Attn, as many FLOP", paper=_absent(4), contender="bilstm-elmo-attn=flop"),
    ),
    note="Not a table of the paper. Matched are the parameters without those of words and characters, and the "
    "floating-point operations of pre-training.",
)

TABLES = (TABLE_1, TABLE_2, TABLE_3, TABLE_4, TABLE_5, TABLE_6, TABLE_7, TABLE_8)


def find_tables(name: str, snapshots: int) -> list[Table]:
    """``all``, or one of them by its name, such as ``table5`` or ``Table 5``, or a table by its number alone."""
    known = {table.name: table for table in (*TABLES, draw_figure_5(snapshots), BUDGET)}
    asked = name.lower().replace(" ", "")
    if asked == "all":
        return list(known.values())
    asked = f"table{asked}" if asked.isdecimal() else asked
    if asked not in known:
        raise usage_error(f'no table named "{name}".{did_you_mean(name, known)} There are: {", ".join(known)}, all.')
    return [known[asked]]
