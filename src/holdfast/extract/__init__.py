"""Extract the text of files: plain text in any encoding, web pages, PDF, Word and e-books.

The content of a file is hostile, so callers run this package in a worker (see `holdfast.workers`)
with a deadline and a memory limit. Only this package imports the optional packages for PDF, Word
and web pages.
"""

from holdfast.extract.bounds import ExtractedText
from holdfast.extract.kinds import FileKind, kind_of_file
from holdfast.extract.reader import extract

__all__ = ["ExtractedText", "FileKind", "extract", "kind_of_file"]
