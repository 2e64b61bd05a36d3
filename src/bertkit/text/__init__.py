"""From text to token ids: one module per kind of tokenizer, their training, and sentence splitting.

A *subword* is an entry of a vocabulary, spelled as the vocabulary spells it (``##ing``, ``Ġthe``, ``fox</w>``); for
``words.py`` it is a whole word. A *token* is one position of an encoded text, given as the id of its subword. *Special
tokens*, such as [CLS], are the subwords that no text becomes.
"""
