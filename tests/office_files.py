"""Small office files, made by hand: nothing of them is ours to check but what is read."""

import io
import zipfile

_TYPES = "<Types xmlns='http://schemas.openxmlformats.org/package/2006/content-types'/>"
_W = "xmlns:w='http://schemas.openxmlformats.org/wordprocessingml/2006/main'"
_A = "xmlns:a='http://schemas.openxmlformats.org/drawingml/2006/main' xmlns:p='http://schemas.openxmlformats.org/presentationml/2006/main'"
_S = "xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/main'"
_R = "xmlns:r='http://schemas.openxmlformats.org/officeDocument/2006/relationships'"


def zipped(files: dict[str, str | bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {"[Content_Types].xml": _TYPES, **files}.items():
            archive.writestr(name, content)
    return made.getvalue()


def docx(*paragraphs: str, inner: str = "", head: str = "") -> bytes:
    body = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs)
    return zipped(
        {
            "word/document.xml": f"<?xml version='1.0'?>{head}<w:document {_W}><w:body>{body}{inner}</w:body></w:document>"
        }
    )


def table(*rows: tuple[str, ...]) -> str:
    cells = [
        "".join(f"<w:tc><w:p><w:r><w:t>{cell}</w:t></w:r></w:p></w:tc>" for cell in row)
        for row in rows
    ]
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"


def pptx(*slides: str) -> bytes:
    shown = {
        f"ppt/slides/slide{at}.xml": f"<p:sld {_A}><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:sld>"
        for at, text in enumerate(slides, 1)
    }
    return zipped({"ppt/presentation.xml": f"<p:presentation {_A}/>", **shown})


def xlsx(sheet: str, *, shared: tuple[str, ...] = ()) -> bytes:
    strings = "".join(f"<si><t>{text}</t></si>" for text in shared)
    relation = "<Relationship Id='rId1' Target='worksheets/sheet1.xml'/>"
    return zipped(
        {
            "xl/workbook.xml": f"<workbook {_S} {_R}><sheets><sheet name='Prices' sheetId='1' r:id='rId1'/></sheets></workbook>",
            "xl/_rels/workbook.xml.rels": f"<Relationships>{relation}</Relationships>",
            "xl/sharedStrings.xml": f"<sst {_S}>{strings}</sst>",
            "xl/worksheets/sheet1.xml": f"<worksheet {_S}><sheetData>{sheet}</sheetData></worksheet>",
        }
    )


def bomb() -> bytes:
    """A document that unpacks to a thousand times its size."""
    return docx(inner="<w:p><w:r><w:t>" + "a" * (32 << 20) + "</w:t></w:r></w:p>")


def laughs() -> bytes:
    entities = "".join(f"<!ENTITY l{at} '{f'&l{at - 1};' * 10}'>" for at in range(1, 10))
    head = f"<!DOCTYPE lol [<!ENTITY l0 'lol'>{entities}]>"
    return docx("&l9;", head=head)
