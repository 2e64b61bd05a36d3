"""Reproduce the tables of BERT's paper: all of its systems on one corpus, by one training loop.

    OUT/corpus.jsonl, tokenizers/, data/    the input of pre-trainings
    OUT/vectors.txt, word-models/NAME/      word vectors and untrained networks of the systems that read words
    OUT/pretraining/NAME/                   one run per network, for every table that needs it
    OUT/finetuning/NAME/TASK/               one run per system and task
    OUT/baselines/TASK.json                 the baselines of each task
    OUT/comparisons/                        intervals of differences between systems
    OUT/locks/                              what each process works on
    OUT/NAME.md, .svg, .json                a table, our figures beside the paper's
    OUT/costs.svg                           the scores of all tables made so far against the cost of pre-training
    OUT/reproduction.md                     what holds of the paper's conclusions, and all tables made so far

The same command continues after an interruption. Started several times it divides the work among the processes, and
under torchrun each pre-training is data-parallel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bertkit.config.records import to_plain
from bertkit.config.settings import Setting, apply
from bertkit.data.word_vectors import require_trainer
from bertkit.errors import SAME_COMMAND, count_of, did_you_mean, usage_error
from bertkit.machine.interrupts import Interrupted
from bertkit.report.progress import Progress
from bertkit.reproduction.corpora import VECTORS, Corpora, find_corpus
from bertkit.reproduction.estimate import ReproductionEstimate
from bertkit.reproduction.pages import write_tables
from bertkit.reproduction.paper import find_tables
from bertkit.reproduction.plan import ReproductionPlan
from bertkit.reproduction.result_tables import ResultTable
from bertkit.reproduction.results import ResultsReader
from bertkit.reproduction.scales import SCALES, Scale
from bertkit.results import Result
from bertkit.runs import differing_settings
from bertkit.scheduling import order_units, run_all
from bertkit.storage.atomic import explain_output, make_folder
from bertkit.storage.checksums import read_record, write_checked
from bertkit.storage.outputs import require_own_folder
from bertkit.training.distributed import rank

_RECORD = "reproduction.json"

_CONTENT = (
    *("corpus.jsonl", "tokenizers", "data", "vectors.txt", "word-models", "pretraining", "finetuning", "baselines"),
    *("comparisons", "locks", "costs.svg", "reproduction.md", "run.json", "config.json"),
)
"""What is written after the record, and what a run or a model has. The files of the tables are written, too."""

_OPTIONS = {"files": "--corpus", "vectors_file": "--vectors"}
"""The options that set what the record has under another name."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Reproduction(Result):
    """The tables that were made, and the page that shows all of them."""

    page: Path
    tables: list[ResultTable]


def reproduce(
    table: str,
    *,
    data: Path,
    output: Path,
    scale: str = "tiny",
    corpus: Sequence[Path] = (),
    vectors: Path | None = None,
    settings: Sequence[Setting] = (),
    command: str = "",
    progress: Progress,
) -> Reproduction:
    """Make ``table`` (or ``all``) at a ``scale`` in ``output``; finished runs there are used.

    ``data`` has the files of the tasks as BERTKIT_DATA has, and the ``corpus`` below ``corpora`` unless it is given.
    ``vectors`` is a file in GloVe's format; without it vectors are trained on the corpus. ``settings`` change fields of
    the scale. ``command`` is shown on the page.
    """
    chosen = _choose_scale(scale, settings)
    files = tuple(corpus) or find_corpus(data)
    corpora = Corpora(scale=chosen, files=files, output=output, vectors_file=vectors)
    plan = ReproductionPlan(find_tables(table, chosen.snapshots), data, corpora)
    _claim_folder(corpora)
    units = plan.units()
    if any(unit.name == VECTORS and not unit.is_done() for unit in order_units(units)):
        require_trainer()  # now, and not after the networks
    # Under torchrun all processes pre-train together: with the networks first, none has to wait for a fine-tuning.
    networks = [unit for unit in order_units(units) if unit.shared]
    try:
        failed = run_all([*networks, *units], output / "locks", progress)
    except Interrupted as stop:  # what a single training says would continue that one alone
        stop.args = (f"stopped; what is finished is kept. {SAME_COMMAND}",)
        raise
    found = ResultsReader(plan, failed).read(command)
    known = [each.name for each in find_tables("all", chosen.snapshots)]
    page = write_tables(found, output, _introduce(chosen), known) if rank() == 0 else output
    return Reproduction(page=page, tables=found)


def estimate_reproduction(
    table: str,
    *,
    data: Path,
    scale: str,
    corpus: Sequence[Path],
    vectors: Path | None,
    settings: Sequence[Setting],
) -> ReproductionEstimate:
    """What ``reproduce`` would train, and its cost on this machine. Only the files of the tasks need to exist."""
    chosen = _choose_scale(scale, settings)
    corpora = Corpora(scale=chosen, files=tuple(corpus), output=Path(), vectors_file=vectors)
    return ReproductionPlan(find_tables(table, chosen.snapshots), data, corpora).estimate()


def _choose_scale(name: str, settings: Sequence[Setting]) -> Scale:
    if name not in SCALES:
        raise usage_error(f'no scale named "{name}".{did_you_mean(name, SCALES)} There are: {", ".join(SCALES)}.')
    return apply(SCALES[name], settings)


def _claim_folder(corpora: Corpora) -> None:
    """Write the scale and the corpus into the output folder, or check that they are those of an earlier command.

    Every process does so: one that waited for no other could find the output of another before the record of it.
    """
    record = to_plain(corpora)
    del record["output"]  # the folder may be moved
    path = corpora.output / _RECORD
    if path.exists() and (other := differing_settings(read_record(path), record)):
        names = ", ".join(_OPTIONS.get(name, name.removeprefix("scale.")) for name in other)  # as --set spells them
        raise usage_error(
            f"{corpora.output} was made with other settings (not the same {names}). Choose another -o folder."
        )
    with explain_output(corpora.output):
        tables = find_tables("all", corpora.scale.snapshots)
        own = [f"{each.name}{suffix}" for each in tables for suffix in (".md", ".json", ".svg")]
        require_own_folder(path, [*_CONTENT, *own])
        make_folder(corpora.output)
    write_checked(path, record)


def _introduce(scale: Scale) -> str:
    """The head of the page: how its figures were made."""
    meaning = {
        "smoke": "This proves that every path works. The figures mean nothing.",
        "tiny": "Networks and corpus are a small fraction of the paper's: the order may agree, figures cannot.",
    }
    seeds = count_of(scale.seeds, "seed")
    epochs = "as many as was published" if scale.profile == "paper" else f"{scale.baseline_epochs}"
    limit = "all" if scale.limit is None else f"at most {scale.limit:,}"
    dev = "all" if scale.dev_limit is None else f"at most {scale.dev_limit:,}"
    heads = (
        "BERT, its ablations and RoBERTa read the mean of a text, or compare both texts of a pair token by token; GPT\n"
        "and networks of words have their published heads, which is a part of the difference to them.\n"
        if scale.mean_heads
        else ""
    )
    return f"""# The tables of BERT's paper, scale {scale.name}

{meaning.get(scale.name, "")}

A cell shows our figure / the paper's, in per cent; ours is the mean ± standard deviation of {seeds}, each with the best
epoch on dev: BERT and GPT take {count_of(scale.epochs, "epoch")}, networks of words {epochs}. BERT-Base is {scale.base}
(layers/width/heads), BERT-Large {scale.large}; pre-training takes {scale.steps:,} steps of {scale.batch_size} rows.
Tasks have {limit} training and {dev} dev examples.
{heads}"""
