"""Tasks: labelled data and how it is asked and marked. The records that tasks on texts are made of are named here."""

from bertkit.tasks._splits import Columns, Split, TaskFiles
from bertkit.tasks._text import Prediction, TextExample, TextTask

__all__ = ["Columns", "Prediction", "Split", "TaskFiles", "TextExample", "TextTask"]
