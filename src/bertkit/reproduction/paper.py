"""The tables of BERT's paper (arXiv 1810.04805v2) and its Figure 5: systems, tasks, and the figures that it reports.

Figures are per cent where they are shares. None is what the paper does not report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Literal, NamedTuple

from bertkit.errors import did_you_mean, usage_error
from bertkit.task_types import FileTask
from bertkit.tasks import glue
from bertkit.tasks.conll2003 import conll2003
from bertkit.tasks.glue import mnli, mrpc, qnli, sst2
from bertkit.tasks.squad import v1, v2
from bertkit.tasks.swag import swag

Match = Literal["parameters", "flop"]
"""What of a pre-training is matched with BERT-Base's: the number of parameters, or of floating-point operations."""


@dataclass(frozen=True)
class System:
    """A system that the paper compares: a network of ``pretrainings.py``, or a word model of ``systems.py``.

    ``cased`` systems have a vocabulary that keeps capitals. ``snapshot`` counts the models saved on the way through
    pre-training, from 1; None is the last. With ``lstm`` two LSTM layers are put on top for fine-tuning.
    """

    network: str
    _: KW_ONLY
    cased: bool = False
    match: Match | None = None
    snapshot: int | None = None
    lstm: bool = False

    @property
    def name(self) -> str:
        """For messages and folders, such as ``gpt=flop``, ``ltr@2`` or ``ltr+bilstm``."""
        suffixes = (
            "-cased" if self.cased else "",
            f"={self.match}" if self.match else "",
            f"@{self.snapshot}" if self.snapshot else "",
            "+bilstm" if self.lstm else "",
        )
        return self.network + "".join(suffixes)


class PaperColumn(NamedTuple):
    """A column of a table.

    A ``dev`` column is the ``score`` on dev of a system that is fine-tuned for ``task``, or, with ``features``, of a
    network on these layers of the frozen system. ``perplexity`` is measured on the held-out text of pre-training,
    ``average`` is the mean of the columns before it, and the labels of ``test`` columns are not public.
    """

    name: str
    task: FileTask | None = None
    score: str = "accuracy"
    features: str | None = None
    kind: Literal["dev", "perplexity", "average", "test"] = "dev"


@dataclass(frozen=True, kw_only=True)
class PaperRow:
    """A system under its name in the paper, with the paper's figures in the order of the columns.

    Without a ``system`` only the paper's figures are shown. ``features`` replaces that of every column. With
    ``shows_size`` the size of the network is added to the name where it is not the paper's.
    """

    name: str
    paper: tuple[float | None, ...]
    system: System | None = None
    features: str | None = None
    shows_size: bool = False


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """A table of the paper. ``note`` explains its figures.

    With ``curves`` the rows are points of these curves over the steps of pre-training.
    """

    name: str
    title: str
    columns: tuple[PaperColumn, ...]
    rows: tuple[PaperRow, ...]
    note: str = ""
    curves: tuple[str, ...] = ()


_BERT_BASE, _BERT_LARGE = System("bert-base"), System("bert-large")
_LEFT_TO_RIGHT, _GPT, _ROBERTA = System("ltr"), System("gpt"), System("roberta")
_MODERNBERT = System("modernbert")

_GLUE = (
    *(PaperColumn(each.name, each.task, each.score) for each in glue.TABLE if each.counts),
    PaperColumn("Average", kind="average"),
)
"""The nine scores that the paper averages (section 4.1)."""

_TEST_SPANS = (PaperColumn("test EM", kind="test"), PaperColumn("test F1", kind="test"))


def _absent(count: int) -> tuple[None, ...]:
    return (None,) * count


TABLE_1 = PaperTable(
    name="table1",
    title="GLUE",
    columns=_GLUE,
    rows=(
        PaperRow(name="Pre-OpenAI SOTA", paper=(80.6, 80.1, 66.1, 82.3, 93.2, 35.0, 81.0, 86.0, 61.7, 74.0)),
        PaperRow(
            name="BiLSTM+ELMo+Attn",
            paper=(76.4, 76.1, 64.8, 79.8, 90.4, 36.0, 73.3, 84.9, 56.8, 71.0),
            system=System("bilstm-elmo-attn"),
        ),
        PaperRow(name="OpenAI GPT", paper=(82.1, 81.4, 70.3, 87.4, 91.3, 45.4, 80.0, 82.3, 56.0, 75.1), system=_GPT),
        PaperRow(
            name="BERT-Base", paper=(84.6, 83.4, 71.2, 90.5, 93.5, 52.1, 85.8, 88.9, 66.4, 79.6), system=_BERT_BASE
        ),
        PaperRow(
            name="BERT-Large",
            paper=(86.7, 85.9, 72.1, 92.7, 94.9, 60.5, 86.5, 89.3, 70.1, 82.1),
            system=_BERT_LARGE,
        ),
        PaperRow(name="RoBERTa (size of BERT-Base)", paper=_absent(10), system=_ROBERTA),
        PaperRow(name="ModernBERT (size of BERT-Base)", paper=_absent(10), system=_MODERNBERT),
    ),
    note="The paper's figures are those of GLUE's server on test; ours are measured on dev.",
)

TABLE_2 = PaperTable(
    name="table2",
    title="SQuAD 1.1",
    columns=(PaperColumn("dev EM", v1, "exact_match"), PaperColumn("dev F1", v1, "f1"), *_TEST_SPANS),
    rows=(
        PaperRow(name="Human", paper=(None, None, 82.3, 91.2)),
        PaperRow(name="#1 Ensemble - nlnet", paper=(None, None, 86.0, 91.7)),
        PaperRow(name="#2 Ensemble - QANet", paper=(None, None, 84.5, 90.5)),
        PaperRow(name="BiDAF", paper=_absent(4), system=System("bidaf")),
        PaperRow(name="BiDAF+ELMo (Single)", paper=(None, 85.6, None, 85.8), system=System("bidaf-elmo")),
        PaperRow(name="R.M. Reader (Ensemble)", paper=(81.2, 87.9, 82.3, 88.5)),
        PaperRow(name="BERT-Base (Single)", paper=(80.8, 88.5, None, None), system=_BERT_BASE),
        PaperRow(name="BERT-Large (Single)", paper=(84.1, 90.9, None, None), system=_BERT_LARGE),
        PaperRow(name="BERT-Large (Ensemble)", paper=(85.8, 91.8, None, None)),
        PaperRow(name="BERT-Large (Sgl.+TriviaQA)", paper=(84.2, 91.1, 85.1, 91.8)),
        PaperRow(name="BERT-Large (Ens.+TriviaQA)", paper=(86.2, 92.2, 87.4, 93.2)),
    ),
    note="Systems of other authors, ensembles and systems trained on TriviaQA too have no figure of ours.",
)

TABLE_3 = PaperTable(
    name="table3",
    title="SQuAD 2.0",
    columns=(PaperColumn("dev EM", v2, "exact"), PaperColumn("dev F1", v2, "f1"), *_TEST_SPANS),
    rows=(
        PaperRow(name="Human", paper=(86.3, 89.0, 86.9, 89.5)),
        PaperRow(name="#1 Single - MIR-MRC (F-Net)", paper=(None, None, 74.8, 78.0)),
        PaperRow(name="#2 Single - nlnet", paper=(None, None, 74.2, 77.1)),
        PaperRow(name="unet (Ensemble)", paper=(None, None, 71.4, 74.9)),
        PaperRow(name="SLQA+ (Single)", paper=(None, None, 71.4, 74.4)),
        PaperRow(name="BERT-Base (Single)", paper=_absent(4), system=_BERT_BASE),
        PaperRow(name="BERT-Large (Single)", paper=(78.7, 81.9, 80.0, 83.1), system=_BERT_LARGE),
    ),
)

TABLE_4 = PaperTable(
    name="table4",
    title="SWAG",
    columns=(PaperColumn("dev", swag), PaperColumn("test", kind="test")),
    rows=(
        PaperRow(name="ESIM+GloVe", paper=(51.9, 52.7), system=System("esim-glove")),
        PaperRow(name="ESIM+ELMo", paper=(59.1, 59.2), system=System("esim-elmo")),
        PaperRow(name="OpenAI GPT", paper=(None, 78.0), system=_GPT),
        PaperRow(name="BERT-Base", paper=(81.6, None), system=_BERT_BASE),
        PaperRow(name="BERT-Large", paper=(86.6, 86.3), system=_BERT_LARGE),
        PaperRow(name="Human (expert)", paper=(None, 85.0)),
        PaperRow(name="Human (5 annotations)", paper=(None, 88.0)),
    ),
)

TABLE_5 = PaperTable(
    name="table5",
    title="Effect of the pre-training tasks",
    columns=(
        PaperColumn("MNLI-m", mnli),
        PaperColumn("QNLI", qnli),
        PaperColumn("MRPC", mrpc),
        PaperColumn("SST-2", sst2),
        PaperColumn("SQuAD F1", v1, "f1"),
    ),
    rows=(
        PaperRow(name="BERT-Base", paper=(84.4, 88.4, 86.7, 92.7, 88.5), system=_BERT_BASE),
        PaperRow(name="No NSP", paper=(83.9, 84.9, 86.5, 92.6, 87.9), system=System("no-nsp")),
        PaperRow(name="LTR & No NSP", paper=(82.1, 84.3, 77.5, 92.1, 77.8), system=_LEFT_TO_RIGHT),
        PaperRow(name="+ BiLSTM", paper=(82.1, 84.1, 75.7, 91.6, 84.9), system=System("ltr", lstm=True)),
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
"""Networks of Table 6, from the smallest to the largest."""

TABLE_6 = PaperTable(
    name="table6",
    title="Size",
    columns=(
        PaperColumn("LM ppl", kind="perplexity"),
        PaperColumn("MNLI-m", mnli),
        PaperColumn("MRPC", mrpc),
        PaperColumn("SST-2", sst2),
    ),
    rows=tuple(
        PaperRow(name=f"L={layers}, H={width}, A={heads}", paper=paper, system=System(network), shows_size=True)
        for (layers, width, heads, paper), network in zip(_SIZES, SIZE_NAMES, strict=True)
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

TABLE_7 = PaperTable(
    name="table7",
    title="CoNLL-2003",
    columns=(PaperColumn("dev F1", conll2003, "f1"), PaperColumn("test F1", kind="test")),
    rows=(
        PaperRow(name="ELMo", paper=(95.7, 92.2), system=System("elmo-crf")),
        PaperRow(name="CVT", paper=(None, 92.6)),
        PaperRow(name="CSE", paper=(None, 93.1)),
        PaperRow(name="Fine-tuning BERT-Large", paper=(96.6, 92.8), system=_BERT_LARGE),
        PaperRow(name="Fine-tuning BERT-Base", paper=(96.4, 92.4), system=_BERT_BASE),
        *(
            PaperRow(name=f"Features: {name}", paper=(paper, None), system=_BERT_BASE, features=features)
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
    """The network that is pre-trained with this mixture; the first one is BERT's own."""
    return "bert-base" if (mask, same, random) == (80, 10, 10) else f"masks-{mask}-{same}-{random}"


MASKINGS: Mapping[str, tuple[int, int, int]] = {
    name_masking(mask, same, random): (mask, same, random) for mask, same, random, _ in _MASKINGS[1:]
}
"""Per cent of the selected tokens that are masked, kept, and replaced at random, by network of Table 8."""

PRETRAINED_BY_PAPER = frozenset({*SIZE_NAMES, "no-nsp", "ltr", *MASKINGS})
"""The networks that BERT's authors pre-trained, all with the settings of section A.2."""

TABLE_8 = PaperTable(
    name="table8",
    title="Replacement of the selected tokens",
    columns=(
        PaperColumn("MNLI", mnli),
        PaperColumn("NER fine-tune", conll2003, "f1"),
        PaperColumn("NER features", conll2003, "f1", features="concat-last-four"),
    ),
    rows=tuple(
        PaperRow(
            name=f"MASK {mask}, SAME {same}, RND {random}", paper=paper, system=System(name_masking(mask, same, random))
        )
        for mask, same, random, paper in _MASKINGS
    ),
)


def make_figure_5(snapshots: int) -> PaperTable:
    """Both curves of Figure 5, with ``snapshots`` points each at even distances over the steps of pre-training."""
    curves = {"bert-base": "BERT-Base (masked LM)", "ltr": "Left to right"}
    return PaperTable(
        name="figure5",
        title="MNLI accuracy by steps of pre-training",
        columns=(PaperColumn("MNLI-m", mnli),),
        rows=tuple(
            PaperRow(name=f"{curve}, {snapshot}/{snapshots}", paper=(None,), system=System(network, snapshot=snapshot))
            for network, curve in curves.items()
            for snapshot in range(1, snapshots + 1)
        ),
        note="The paper draws curves and prints no figures: 1M steps are almost 1.0 above 500k, and the masked "
        "language model is above the left-to-right one almost at once.",
        curves=tuple(curves.values()),
    )


_BILSTM_SAME_PARAMETERS = System("bilstm-elmo-attn", match="parameters")

BUDGET = PaperTable(
    name="budget",
    title="Is it the method or the budget?",
    columns=(
        PaperColumn("MNLI-m", mnli),
        PaperColumn("QNLI", qnli),
        PaperColumn("MRPC", mrpc),
        PaperColumn("SST-2", sst2),
    ),
    rows=(
        PaperRow(name="BERT-Base", paper=_absent(4), system=_BERT_BASE),
        PaperRow(name="LTR & No NSP, same steps", paper=_absent(4), system=_LEFT_TO_RIGHT),
        PaperRow(name="LTR & No NSP, same FLOP", paper=_absent(4), system=System("ltr", match="flop")),
        PaperRow(name="OpenAI GPT, same parameters and steps", paper=_absent(4), system=_GPT),
        PaperRow(name="OpenAI GPT, same FLOP", paper=_absent(4), system=System("gpt", match="flop")),
        PaperRow(name="RoBERTa, same parameters and steps", paper=_absent(4), system=_ROBERTA),
        PaperRow(name="RoBERTa, same FLOP", paper=_absent(4), system=System("roberta", match="flop")),
        PaperRow(
            name="BiLSTM+ELMo+Attn, same parameters",
            paper=_absent(4),
            system=_BILSTM_SAME_PARAMETERS,
        ),
        PaperRow(name="BiLSTM+ELMo+Attn, same FLOP", paper=_absent(4), system=System("bilstm-elmo-attn", match="flop")),
    ),
    note="Not a table of the paper. The parameters do not include the embeddings of words and characters; the "
    "floating-point operations are those of pre-training.",
)

TABLES = (TABLE_1, TABLE_2, TABLE_3, TABLE_4, TABLE_5, TABLE_6, TABLE_7, TABLE_8)


def find_tables(name: str, snapshots: int) -> list[PaperTable]:
    """``all`` tables, or one by its name, such as ``table5`` or ``Table 5``, or by its number."""
    known = {table.name: table for table in (*TABLES, make_figure_5(snapshots), BUDGET)}
    wanted = name.lower().replace(" ", "")
    if wanted == "all":
        return list(known.values())
    wanted = f"table{wanted}" if wanted.isdecimal() else wanted
    if wanted not in known:
        raise usage_error(f'no table named "{name}".{did_you_mean(name, known)} There are: {", ".join(known)}, all.')
    return [known[wanted]]


def find_column(table: str, name: str) -> PaperColumn | None:
    """The column of a table, by both names; None if there is none."""
    columns = (each for known in find_tables("all", 1) if known.name == table for each in known.columns)
    return next((column for column in columns if column.name == name), None)
