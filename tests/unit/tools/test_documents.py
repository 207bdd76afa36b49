"""Files by their content: what text is in them, and that a hostile one costs nothing."""

import asyncio
import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palyra.core.errors import InvalidInput
from palyra.tools import office
from palyra.tools.office import Document
from tests import office_files


def read(data: bytes, name: str = "") -> Document:
    return asyncio.run(office.read(data, name))


def test_a_word_document_is_paragraphs_and_tables() -> None:
    found = read(
        office_files.docx(
            "One", "Two &amp; three", inner=office_files.table(("a", "b"), ("c", "d"))
        )
    )
    assert found.media_type == office.MEDIA["docx"]
    assert found.text is not None
    assert [" ".join(line.split()) for line in found.text.splitlines()] == [
        "One",
        "Two & three",
        "a b",
        "c d",
    ]


def test_a_presentation_is_its_slides_in_their_order() -> None:
    found = read(office_files.pptx(*(f"slide {at}" for at in range(1, 12))))
    assert found.text is not None
    assert found.text.startswith("[slide 1]\nslide 1\n\n[slide 2]\nslide 2")
    assert found.text.endswith("[slide 11]\nslide 11")


def test_a_workbook_is_rows_with_tabs() -> None:
    rows = (
        "<row><c r='A1' t='s'><v>0</v></c><c r='C1' t='s'><v>1</v></c></row>"
        "<row><c r='A2'><v>12.5</v></c><c r='B2' t='b'><v>1</v></c><c r='C2' t='inlineStr'><is><t>in line</t></is></c></row>"
        "<row><c r='XFD3'><v>9</v></c></row><row/>"
    )
    found = read(office_files.xlsx(rows, shared=("name", "price")))
    assert found.media_type == office.MEDIA["xlsx"]
    assert found.text == "[sheet Prices]\nname\t\tprice\n12.5\tTRUE\tin line\n" + "\t" * 20 + "9"


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (office_files.bomb(), "unpacks to more than"),
        (office_files.laughs(), "declares a document type"),
        (office_files.docx("a").replace(b"PK\x01\x02", b"PK\x09\x02"), "cannot be read"),
        (office_files.zipped({"word/document.xml": "<w:document><w:p>"}), "XML is damaged"),
    ],
    ids=["bomb", "entities", "torn", "unclosed"],
)
def test_a_hostile_document_is_refused_in_little_time(made: bytes, why: str) -> None:
    began = time.process_time()
    with pytest.raises(InvalidInput, match=why):
        read(made)
    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    ("data", "media_type", "text"),
    [
        (b"plain\n", "text/plain", "plain\n"),
        ("grün".encode("latin-1"), "text/plain", "grün"),
        ("hi".encode("utf-16"), "text/plain", "hi"),
        (b"<!doctype html><title>T</title><p>Hello <b>you</b></p>", "text/html", "Hello you"),
        (b"\x7fELF\0\1\2", "application/octet-stream", None),
        (office_files.zipped({"a.txt": "a"}), "application/zip", None),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 64, "application/octet-stream", None),
    ],
)
def test_other_files_are_text_or_only_described(
    data: bytes, media_type: str, text: str | None
) -> None:
    found = read(data)
    assert (found.media_type, found.text and found.text.replace("*", "")) == (media_type, text)
    assert bool(found.note) == (text is None)


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=300), st.sampled_from([b"", b"PK\x03\x04", b"<html>", b"GIF89a"]))
def test_no_file_breaks_the_reader(data: bytes, head: bytes) -> None:
    try:
        found = read(head + data)
    except InvalidInput:
        return
    assert found.media_type


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_no_damage_to_a_document_breaks_the_reader(data: st.DataObject) -> None:
    whole = bytearray(office_files.docx("One", "Two"))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(4, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with suppress(InvalidInput):
        assert read(bytes(whole)).media_type
