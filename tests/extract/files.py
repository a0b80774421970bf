"""Small files of each format, made by hand: a PDF, a Word file, an e-book."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Mapping

import docx


def pdf(*pages: str, title: str = "", stream: bytes | None = None) -> bytes:
    """A PDF with a line of text on each page; or with one page of a stream as it is."""
    streams = [stream] if stream is not None else [_drawn(page) for page in pages]
    objects: list[bytes] = []
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(streams)))
    objects.append(b"<< /Type /Catalog /Pages 2 0 R >>")
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {len(streams)} >>".encode())
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for n, drawn in enumerate(streams):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * n} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        head = f"<< /Length {len(drawn)} /Filter /FlateDecode >>".encode()
        objects.append(head + b"\nstream\n" + drawn + b"\nendstream")
    objects.append(f"<< /Title ({title}) /CreationDate (D:20240301120000Z) >>".encode())
    return _assembled(objects)


def _drawn(page: str) -> bytes:
    lines = "".join(f"({line}) Tj 0 -14 Td " for line in page.split("\n"))
    return zlib.compress(f"BT /F1 12 Tf 72 720 Td {lines}ET".encode())


def _assembled(objects: list[bytes]) -> bytes:
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, io.SEEK_END)
    places = []
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    trailer = b"<< /Size %d /Root 1 0 R /Info %d 0 R >>" % (len(objects) + 1, len(objects))
    out.write(b"trailer\n%s\nstartxref\n%d\n%%%%EOF" % (trailer, start))
    return out.getvalue()


def word(*paragraphs: str, rows: list[list[str]] | None = None) -> bytes:
    document = docx.Document()
    document.add_heading("Findings", level=1)
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    if rows:
        table = document.add_table(len(rows), len(rows[0]))
        for row, cells in zip(table.rows, rows, strict=True):
            for cell, text in zip(row.cells, cells, strict=True):
                cell.text = text
    document.core_properties.title = "The report"
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def epub(*chapters: str, title: str = "A book") -> bytes:
    out = io.BytesIO()
    items = "".join(f'<item id="c{n}" href="c%20{n}.xhtml"/>' for n in range(len(chapters)))
    order = "".join(f'<itemref idref="c{n}"/>' for n in reversed(range(len(chapters))))
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr(
            "OEBPS/content.opf",
            f"<package><metadata><dc:title>{title}</dc:title></metadata>"
            f"<manifest>{items}</manifest><spine>{order}</spine></package>",
        )
        for n, chapter in enumerate(chapters):
            archive.writestr(f"OEBPS/c {n}.xhtml", f"<html><body>{chapter}</body></html>")
    return out.getvalue()


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    """A zip of members."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def word_with(body: str, styles: Callable[[bytes], bytes] = bytes) -> bytes:
    """A Word file with XML before its heading, and with changed styles."""
    with zipfile.ZipFile(io.BytesIO(word())) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    start = b"<w:body>"
    members["word/document.xml"] = members["word/document.xml"].replace(
        start, start + body.encode(), 1
    )
    members["word/styles.xml"] = styles(members["word/styles.xml"])
    return zipped(members)


def cell(text: str, properties: str = "") -> str:
    """A table cell in the XML of Word."""
    paragraph = f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph}</w:tc>"


def shared_pdf(line: str, times: int) -> bytes:
    """A PDF whose page tree lists one page again and again."""
    drawn = _drawn(line)
    return _assembled(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b"4 0 R " * times, times),
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>",
            b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(drawn), drawn),
            b"<< /Title () >>",
        ]
    )
