"""SQuAD 1.1 and 2.0 (Rajpurkar et al. 2016, 2018), and KorQuAD 1.0 (Lim et al. 2019): questions about paragraphs.

Windows, lengths and the choice of an answer are those of google-research/bert ``run_squad.py``; the scores are those of
the official programs.
"""

from __future__ import annotations

from bertkit.task_files.files import Split, TaskFiles
from bertkit.task_files.squad_files import COLUMNS
from bertkit.task_types.question_answering import QuestionAnsweringTask


def _files(home: str, train: str, dev: str) -> TaskFiles:
    splits = {split: Split(files=(file,), columns=COLUMNS) for split, file in (("train", train), ("dev", dev))}
    return TaskFiles(home=home, splits=splits)


v1 = QuestionAnsweringTask(
    name="squad:v1",
    files=_files("squad", "train-v1.1.json", "dev-v1.1.json"),
    about="Which passage of a paragraph answers the question? SQuAD 1.1 (Rajpurkar et al. 2016).",
)

v2 = QuestionAnsweringTask(
    name="squad:v2",
    null=True,
    rules="v2",
    files=_files("squad", "train-v2.0.json", "dev-v2.0.json"),
    about="Which passage answers the question, if any does? SQuAD 2.0 (Rajpurkar et al. 2018).",
)

korquad = QuestionAnsweringTask(
    name="squad:korquad",
    rules="korquad",
    files=_files("korquad", "KorQuAD_v1.0_train.json", "KorQuAD_v1.0_dev.json"),
    about="Which passage of a Korean paragraph answers the question? KorQuAD 1.0 (Lim et al. 2019).",
)
