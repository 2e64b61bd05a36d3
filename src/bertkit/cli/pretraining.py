"""The verb that pre-trains an encoder."""

from __future__ import annotations

from pathlib import Path

import bertkit
from bertkit.cli.output import show_json, show_lines, show_table
from bertkit.cli.verbosity import Verbosity
from bertkit.errors import count_of
from bertkit.options.pretraining import PretrainOptions
from bertkit.report.progress import describe_duration


def pretrain(options: PretrainOptions, *, json: bool, verbosity: Verbosity) -> None:
    """Pre-train, continue or plan a run, and show its result."""
    from bertkit.pretraining.planning import PretrainPlan
    from bertkit.runs import read_run
    from bertkit.training.distributed import rank

    result = bertkit.pretrain(**vars(options))
    if rank() > 0:
        return
    if isinstance(result, PretrainPlan):
        show_json(result) if json else show_lines(result.lines())
        return
    if json:
        show_json(result)
    else:
        show_lines([f"{result.folder}: {count_of(result.steps, 'step')} in {describe_duration(result.seconds)}"])
        if result.before:
            rows = [(name, result.before.get(name, "-"), after) for name, after in result.heldout.items()]
            show_table(("held out", "before", "after"), rows)
        elif result.heldout:
            show_table(("held out", ""), result.heldout.items())
    run = options.output or options.resume
    if "mlm" in read_run(result.folder)["run"]["task"]["objectives"]:
        verbosity.suggest("bertkit", "fill", run, _example_with_mask(result.folder / "model"))
    else:
        verbosity.suggest("bertkit", "finetune", "YOUR.csv", "--model", run, "-o", "TUNED")


def _example_with_mask(model: Path) -> str:
    """A text with a masked word, ``[MASK]`` or RoBERTa's ``<mask>``: a sentence if the vocabulary is English."""
    from bertkit.text.loading import load_tokenizer

    tokenizer = load_tokenizer(model)
    mask, sentence = tokenizer.id_to_token(tokenizer.mask_id), "The capital of France is"
    ids = tokenizer.encode(sentence).ids
    is_english = tokenizer.unk_id not in ids and len(ids) <= 2 * len(sentence.split())
    return f"{sentence} {mask}." if is_english else f"YOUR TEXT, WITH {mask} FOR A WORD"
