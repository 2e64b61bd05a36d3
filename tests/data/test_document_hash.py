from __future__ import annotations

from array import array

from bertkit.data.document_hash import KEYS, DocumentHash, count_duplicates


def hash_of(*chunks: str) -> DocumentHash:
    document = DocumentHash()
    for chunk in chunks:
        document.add(chunk)
    return document


def test_equal_texts_have_equal_hashes() -> None:
    assert hash_of("one two", "three").value == hash_of("one two", "three").value != hash_of("one two", "four").value
    assert 0 <= hash_of("one").value < KEYS


def test_white_space_around_a_chunk_is_ignored() -> None:
    assert hash_of(" one two\n", "\tthree").value == hash_of("one two", "three").value
    assert hash_of("one  two").value != hash_of("one two").value


def test_a_document_of_white_space_is_blank() -> None:
    assert hash_of().is_blank
    assert hash_of(" \n", "\u3000").is_blank
    assert not hash_of(" ", "x").is_blank


def test_duplicates_are_counted_in_the_file_that_repeats_them() -> None:
    files = [array("Q", [7, 9, 7]), array("Q"), array("Q", [9, 11, 11, 13])]
    assert count_duplicates(files) == [1, 0, 2]


def test_the_hash_of_a_divided_document_depends_on_all_parts_in_order() -> None:
    one, two = hash_of("one").value, hash_of("two").value
    assert DocumentHash.join([one]) == one
    assert len({one, two, DocumentHash.join([one, two]), DocumentHash.join([two, one])}) == 4
    assert 0 <= DocumentHash.join([one, two]) < KEYS
