"""CoNLL-2003: names of people, places, organisations and others in news (Tjong Kim Sang and De Meulder 2003)."""

from __future__ import annotations

from bertkit.task_files.conll_files import COLUMNS
from bertkit.task_files.files import Split, TaskFiles
from bertkit.task_types.tagging import TaggingTask

_FILES = {"train": "eng.train", "dev": "eng.testa", "test": "eng.testb"}

conll2003 = TaggingTask(
    name="conll2003",
    labels=("O", "B-LOC", "I-LOC", "B-MISC", "I-MISC", "B-ORG", "I-ORG", "B-PER", "I-PER"),
    files=TaskFiles(
        home="conll2003", splits={split: Split(files=(file,), columns=COLUMNS) for split, file in _FILES.items()}
    ),
    about="Which words name a person, a place, an organisation or something else? English news (CoNLL-2003).",
)
