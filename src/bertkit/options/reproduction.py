"""Options of reproduce."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bertkit.options.inputs import InputFile, InputPath
from bertkit.options.job import AnyPath, Engine, ModelJobOptions


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions(ModelJobOptions):
    """Reproduce a table of the BERT paper, all systems pre-trained on one corpus.

    The same command continues after an interruption. Started several times, it divides the work among the processes.
    """

    CONTINUES = True

    table: str = field(kw_only=False)
    """table1 to table8, figure5, budget (baselines matched by parameters and by FLOPs), or all."""
    output: AnyPath | None = None
    """Folder for every model, run, table and plot."""
    data: InputPath | None = None
    """Folder with glue, squad, swag, conll2003 and corpora. [default: BERTKIT_DATA]"""
    scale: str = "tiny"
    """smoke (minutes, to see that it runs), tiny (two days on two cores for all) or paper (the paper's own recipe)."""
    corpus: Sequence[InputFile] = ()
    """Text files to pre-train on. [default: enwiki* and books/* in DATA/corpora]"""
    vectors: InputFile | None = None
    """Word vectors in GloVe's text format. [default: trained on the corpus]"""
    set: Sequence[str] | Mapping[str, object] = ()
    """Settings of the scale, such as steps=2000 limit=1000 seeds=2."""
    engine: Engine = "local"
    """Train on this machine, or in one process per GPU or core of a Ray cluster whose nodes have bertkit and the same
    files (bertkit[ray])."""
    plan: bool = False
    """Show what would be trained and what it would cost, without training."""
