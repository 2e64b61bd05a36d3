"""From text files to batches: sources, shards, preparation, construction of examples, order and collation.

Words for a stretch of text:

* *document*: what the author wrote as one text: a record of a JSONL file, a book, the text between blank lines.
* *chunk*: at most 200,000 characters of one document, as a source yields them (``sources.TextChunk``).
* *part*: consecutive lines or documents of one file, at most a million bytes (``parts.LinePart``).
* *work unit*: parts that one worker reads and tokenizes at a time (``unit_worker.WorkUnit``).
* *segment*: consecutive tokens of a corpus that form text A or B of an example (``segments.RowSegments``).
* *row*: the tokens that the model reads as one sequence, special tokens included.
"""
