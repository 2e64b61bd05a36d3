"""The tasks of GLUE (Wang et al. 2018) in the benchmark's own files, with the scores that BERT's paper reports.

The files are tab-separated, and a quotation mark in them is a character like any other. Class names are the
usual ones; their order is Hugging Face's, so that exported models agree. Test files have no labels. The diagnostic set
``ax`` has no train split: it is for models that are fine-tuned on ``mnli``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from bertkit.formats.table_formats import Format
from bertkit.task_files.files import Columns, Split, TaskFiles
from bertkit.task_types.regression import Numbers, RegressionTask
from bertkit.task_types.text_classification import TextClassificationTask
from bertkit.task_types.text_task import TextTask

_LITERAL = Format(kind="delimited", delimiter="\t", quotes=False)
_NAMELESS_COLA = replace(_LITERAL, names=("source", "label", "original_mark", "sentence"))
_BROKEN_QQP = replace(_LITERAL, skips_broken=True)
"""In the QQP that GLUE publishes, a line end inside a question breaks some rows in two."""

_TRUTH = ("0", "1")
_ENTAILMENT = ("entailment", "not_entailment")


def _files(
    home: str, first: str, second: str | None = None, *, label: str, id: str = "index", form: Format = _LITERAL
) -> TaskFiles:
    """``train.tsv`` and ``dev.tsv`` with a label column, ``test.tsv`` with an ``id`` column instead."""
    labelled = Columns(first=first, second=second, label=label)
    unlabelled = Columns(first=first, second=second, id=id)
    return TaskFiles(
        home=f"glue/{home}",
        splits={
            "train": Split(files=("train.tsv",), columns=labelled, form=form),
            "dev": Split(files=("dev.tsv",), columns=labelled, form=form),
            "test": Split(files=("test.tsv",), columns=unlabelled, form=replace(form, names=())),
        },
    )


def _mnli_files() -> TaskFiles:
    """Two dev and two test sets: of the genres of train (matched), and of other genres (mismatched)."""
    files = _files("MNLI", "sentence1", "sentence2", label="gold_label")
    names = {"dev": "dev_matched", "test": "test_matched"}
    splits = {split: replace(each, files=(f"{names.get(split, split)}.tsv",)) for split, each in files.splits.items()}
    for split in ("dev", "test"):
        name = f"{split}_mismatched"
        splits[name] = replace(splits[split], files=(f"{name}.tsv",))
    return replace(files, splits=splits)


cola = TextClassificationTask(
    name="glue:cola",
    metric="matthews",
    also=("accuracy",),
    labels=("unacceptable", "acceptable"),
    spellings=_TRUTH,
    files=_files("CoLA", "sentence", label="label", form=_NAMELESS_COLA),
    about="Is the sentence acceptable English? Corpus of Linguistic Acceptability (Warstadt et al. 2018).",
)

sst2 = TextClassificationTask(
    name="glue:sst2",
    metric="accuracy",
    labels=("negative", "positive"),
    spellings=_TRUTH,
    files=_files("SST-2", "sentence", label="label"),
    about="Is the sentence of a film review favourable? Stanford Sentiment Treebank (Socher et al. 2013).",
)

mrpc = TextClassificationTask(
    name="glue:mrpc",
    metric="f1",
    also=("accuracy",),
    labels=("not_equivalent", "equivalent"),
    spellings=_TRUTH,
    pair=True,
    files=_files("MRPC", "#1 String", "#2 String", label="Quality"),
    about="Do two sentences from the news mean the same? Microsoft Research Paraphrase Corpus (Dolan et al. 2005).",
)

stsb = RegressionTask(
    name="glue:stsb",
    metric="spearman",
    also=("pearson",),
    pair=True,
    numbers=Numbers(lowest=0.0, highest=5.0),
    files=_files("STS-B", "sentence1", "sentence2", label="score"),
    about="How alike in meaning are two sentences, 0 to 5? Semantic Textual Similarity Benchmark (Cer et al. 2017).",
)

qqp = TextClassificationTask(
    name="glue:qqp",
    metric="f1",
    also=("accuracy",),
    labels=("not_duplicate", "duplicate"),
    spellings=_TRUTH,
    pair=True,
    files=_files("QQP", "question1", "question2", label="is_duplicate", id="id", form=_BROKEN_QQP),
    about="Do two questions ask the same? Quora Question Pairs (2017).",
)

mnli = TextClassificationTask(
    name="glue:mnli",
    metric="accuracy",
    labels=("entailment", "neutral", "contradiction"),
    pair=True,
    files=_mnli_files(),
    about="Does the first sentence entail the second, contradict it or neither? MultiNLI (Williams et al. 2018).",
)

qnli = TextClassificationTask(
    name="glue:qnli",
    metric="accuracy",
    labels=_ENTAILMENT,
    pair=True,
    files=_files("QNLI", "question", "sentence", label="label"),
    about="Does the sentence hold the answer to the question? Made from SQuAD (Rajpurkar et al. 2016).",
)

rte = TextClassificationTask(
    name="glue:rte",
    metric="accuracy",
    labels=_ENTAILMENT,
    pair=True,
    files=_files("RTE", "sentence1", "sentence2", label="label"),
    about="Does the first text entail the second? Recognizing Textual Entailment (Bentivogli et al. 2009).",
)

wnli = TextClassificationTask(
    name="glue:wnli",
    metric="accuracy",
    labels=("not_entailment", "entailment"),
    spellings=_TRUTH,
    pair=True,
    files=_files("WNLI", "sentence1", "sentence2", label="label"),
    about="Does the sentence with its pronoun replaced follow? Made from Winograd schemas (Levesque et al. 2011).",
)

ax = TextClassificationTask(
    name="glue:ax",
    metric="matthews",
    also=("accuracy",),
    labels=mnli.labels,
    pair=True,
    files=TaskFiles(
        home="glue/AX",
        splits={
            "dev": Split(
                files=("diagnostic-full.tsv",),
                columns=Columns(first="Premise", second="Hypothesis", label="Label"),
                form=_LITERAL,
            ),
            "test": Split(
                files=("diagnostic.tsv",),
                columns=Columns(first="sentence1", second="sentence2", id="index"),
                form=_LITERAL,
            ),
        },
    ),
    about="GLUE's diagnostic set for a model that is fine-tuned on glue:mnli (Wang et al. 2018); it has no train.",
)


class Submitted(NamedTuple):
    """A file of a submission: the predictions for a split of a task, by a model that is fine-tuned on another or it.

    Only the diagnostic set ``ax`` is predicted by the model of another task.
    """

    file: str
    task: TextTask
    split: str
    fine_tuned_on: TextTask


SUBMISSION = (
    Submitted("CoLA.tsv", cola, "test", cola),
    Submitted("SST-2.tsv", sst2, "test", sst2),
    Submitted("MRPC.tsv", mrpc, "test", mrpc),
    Submitted("STS-B.tsv", stsb, "test", stsb),
    Submitted("QQP.tsv", qqp, "test", qqp),
    Submitted("MNLI-m.tsv", mnli, "test", mnli),
    Submitted("MNLI-mm.tsv", mnli, "test_mismatched", mnli),
    Submitted("QNLI.tsv", qnli, "test", qnli),
    Submitted("RTE.tsv", rte, "test", rte),
    Submitted("WNLI.tsv", wnli, "test", wnli),
    Submitted("AX.tsv", ax, "test", mnli),
)
"""What GLUE's server expects in one archive."""


class GlueColumn(NamedTuple):
    """A column of the paper's Table 1: a score of a task. ``counts`` is False if the average leaves it out."""

    name: str
    task: TextTask
    score: str
    counts: bool = True


TABLE = (
    GlueColumn("MNLI-m", mnli, "accuracy"),
    GlueColumn("MNLI-mm", mnli, "accuracy_mismatched"),
    GlueColumn("QQP", qqp, "f1"),
    GlueColumn("QNLI", qnli, "accuracy"),
    GlueColumn("SST-2", sst2, "accuracy"),
    GlueColumn("CoLA", cola, "matthews"),
    GlueColumn("STS-B", stsb, "spearman"),
    GlueColumn("MRPC", mrpc, "f1"),
    GlueColumn("RTE", rte, "accuracy"),
    GlueColumn("WNLI", wnli, "accuracy", counts=False),
)
"""The paper's average is that of nine columns: MNLI counts twice and WNLI not at all (Table 1; section 4.1)."""
