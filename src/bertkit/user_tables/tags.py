"""A user's own words with tags, or texts with the spans of their entities."""

from __future__ import annotations

from collections import Counter

from bertkit.errors import count_of, data_error
from bertkit.metrics.entities import NO_TYPE, find_entities, spell_tag
from bertkit.task_files.conll_files import COLUMNS
from bertkit.task_files.labels import sort_labels
from bertkit.task_files.tag_files import holds_tags, read_sentences
from bertkit.task_types.tagging import TaggingTask
from bertkit.user_tables.files import Guess, UserFiles, check_rows
from bertkit.user_tables.label_column import list_classes

_MOST_WORDS = 100
"""A sentence has fewer; without empty lines a whole file is one."""


def have_tags(files: UserFiles) -> bool:
    """Whether the files have words with tags."""
    return holds_tags(files.table, files.encoding)


def guess_tags(files: UserFiles) -> Guess:
    """The task of tags; the types of entities are those that occur in train."""
    found = files.read_with(COLUMNS)
    sentences = [sentence for path in files.paths["train"] for sentence in read_sentences(path)]
    if all(word.isdecimal() for sentence in sentences for word in sentence.words):
        raise data_error(f"{files.first}: the first column has numbers alone, and no words. Words come first.")
    types = Counter(entity.type for sentence in sentences for entity in find_entities(sentence.tags))
    if not types:
        raise data_error(f"{files.first}: every word has the tag O. There must be at least one entity.")
    if "" in types and len(types) > 1:
        mixed = f"{types['']:,} entities have bare tags such as B, and {types.total() - types['']:,} have a type"
        raise data_error(f"{files.first}: {mixed}, such as B-{max(types)}. Give all of them a type, or none.")
    if len(sentences) == 1 and len(sentences[0].words) > _MOST_WORDS and "dev" not in files.paths:
        raise data_error(
            f"{files.first}: one sentence of {count_of(len(sentences[0].words), 'word')}. Put an empty line after each "
            "sentence."
        )
    tags = ("O", *(spell_tag(letter, type) for type in sort_labels(types) for letter in "BI"))
    task = TaggingTask(name=files.name, labels=tags, files=found, max_length=files.max_length, heldout=files.heldout)
    check_rows(task, files.paths.keys() - {"train"})
    named = Counter({type or NO_TYPE: count for type, count in types.items()})
    count = count_of(len(sentences), "sentence")
    return Guess(task=task, sentence=f"{count} with tags of words: {list_classes(named)}")
