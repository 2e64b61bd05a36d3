"""From text files to batches: sources, shards, preparation, construction of examples, order and collation.

Words for a stretch of text:

* *document*: what the author wrote as one text: a record of a JSONL file, a book, the text between blank lines.
* *chunk*: at most 200,000 characters of one document, as a source yields them (``sources.TextChunk``).
* *work unit*: chunks that one worker tokenizes at a time (``tokenizing.WorkUnit``).
* *segment*: consecutive tokens of a corpus that form text A or B of an example (``segment_pairs.SegmentPair``).
* *row*: the tokens that the model reads as one sequence, special tokens included.
"""
