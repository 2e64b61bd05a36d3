"""SWAG (Zellers et al. 2018) in its own CSV files: which of four endings continues a sentence?

Other files with the same columns, such as those of CODAH, are given with ``--train`` and ``--dev``. The paper trains 3
epochs with learning rate 2e-5 and batches of 16 (section 4.4). Test files have no labels.
"""

from __future__ import annotations

from bertkit.task_files.files import Columns, Split, TaskFiles
from bertkit.task_types.multiple_choice import MultipleChoiceTask

_LABELLED = Columns(first="sent1", second="sent2", label="label", id="fold-ind")

swag = MultipleChoiceTask(
    name="swag",
    choices=("ending0", "ending1", "ending2", "ending3"),
    files=TaskFiles(
        home="swag",
        splits={
            "train": Split(files=("train.csv",), columns=_LABELLED),
            "dev": Split(files=("val.csv",), columns=_LABELLED),
            "test": Split(files=("test.csv",), columns=_LABELLED.without_labels()),
        },
    ),
    about="Which of four endings fits a sentence? Situations With Adversarial Generations (Zellers et al. 2018).",
)
