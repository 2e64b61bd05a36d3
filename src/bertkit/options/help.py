"""The help of the command line: how the options of a verb are grouped, and an example for every verb."""

from __future__ import annotations

from collections.abc import Mapping

from bertkit.options.description import Option

REQUIRED, OPTIONS, DATA, COLUMNS, TRAINING, ADVANCED, OUTPUT = (
    "Required options",
    "Options",
    "Data",
    "Columns and labels",
    "Training",
    "Advanced",
    "Output",
)
GROUPS = (REQUIRED, OPTIONS, DATA, COLUMNS, TRAINING, ADVANCED, OUTPUT)
"""The groups in the order in which the help shows them."""

_GROUP_OF: Mapping[str, str] = {
    **dict.fromkeys(("data", "train", "dev", "test", "split", "on", "limit", "encoding", "also_evaluate", "mix"), DATA),
    **dict.fromkeys(("text", "pair", "label", "id"), COLUMNS),
    **dict.fromkeys(("class_weights", "allow_rare_labels", "fold_labels"), COLUMNS),
    **dict.fromkeys(("seeds", "seed", "first_seed", "profile", "epochs", "lr", "batch_size"), TRAINING),
    **dict.fromkeys(("steps", "minutes", "seq_length", "size", "architecture"), TRAINING),
    **dict.fromkeys(("grid", "trials", "sampler"), TRAINING),
    **dict.fromkeys(("from_scratch", "reinit_layers", "layer_decay", "set", "then", "no_baseline"), ADVANCED),
    **dict.fromkeys(("ensemble", "precision", "device", "shard", "config"), ADVANCED),
    **dict.fromkeys(("json", "origin", "progress", "quiet", "overwrite"), OUTPUT),
}
"""The group of an option by its name; others are in ``OPTIONS``."""

_TABLE_OPTIONS = {"kind"}
"""Options that are about columns where a verb has the option ``label``, such as the kind of the labels."""

EXAMPLES: Mapping[str, str] = {
    "quickstart": "bertkit quickstart -o quickstart --minutes 10",
    "doctor": "bertkit doctor",
    "corpus check": "bertkit corpus check texts/*.txt",
    "tokenizer train": "bertkit tokenizer train texts/*.txt --vocab-size 8000 -o tok",
    "tokenizer show": 'bertkit tokenizer show tok "An unbelievable story"',
    "tokenizer compare": "bertkit tokenizer compare tok8k tok16k --texts heldout.txt",
    "prepare": "bertkit prepare texts/*.txt --tokenizer tok -o data",
    "pretrain": "bertkit pretrain data --size mini --profile fast --minutes 30 -o runs/mini",
    "fill": 'bertkit fill runs/mini "Paris is the [MASK] of France."',
    "finetune": "bertkit finetune reviews.csv --model runs/mini -o runs/reviews",
    "tune": "bertkit tune reviews.csv --model runs/mini -o sweep --grid lr=5e-5,3e-5 epochs=2,3",
    "evaluate": "bertkit evaluate runs/reviews --data more.csv",
    "compare": "bertkit compare runs/reviews runs/other",
    "predict": "bertkit predict runs/reviews new.csv -o predictions.csv",
    "embed": "bertkit embed runs/mini texts.txt -o vectors.npy",
    "search": 'bertkit search vectors.npy "a query" --model runs/mini --texts texts.txt',
    "glue table": "bertkit glue table runs/cola runs/sst2",
    "glue submit": "bertkit glue submit runs/cola runs/sst2 -o submission",
    "squad score": "bertkit squad score dev-v2.0.json predictions.json",
    "bench prepare": "bertkit bench prepare texts/*.txt --tokenizer tok --against tokenizers datasets",
    "bench pretrain": "bertkit bench pretrain --size base --batch-size 8 --against hf",
    "bench finetune": "bertkit bench finetune glue:sst2 --model models/bert --against hf",
    "bench inference": "bertkit bench inference models/bert texts.txt --against hf ort",
    "serve": "bertkit serve runs/reviews --port 8080",
    "attention": 'bertkit attention runs/mini "The river ran past the mill." -o attention.html',
    "explain": 'bertkit explain runs/reviews "A film to see twice." -o page.html',
    "import": "bertkit import google-bert/bert-base-uncased -o models/bert",
    "export": "bertkit export runs/reviews --to huggingface -o exported",
    "reproduce": "bertkit reproduce table5 --scale tiny -o reproduction",
    "track": "bertkit track runs/mini --follow",
    "config show": "bertkit config show runs/mini --origin",
}


def group_of(option: Option, *, has_labels: bool) -> str:
    """The group of an option of a verb; ``has_labels`` says that the verb has the option ``label``."""
    if option.required:
        return REQUIRED
    if option.name in _TABLE_OPTIONS and has_labels:
        return COLUMNS
    return group_of_switch(option.name)


def group_of_switch(name: str) -> str:
    """The group of an option that only the command line has."""
    return _GROUP_OF.get(name, OPTIONS)
