"""The text of a file: plain in any encoding, web pages, PDF, Word and e-books.

kinds → plain · html · pdf · word → epub → extracting. What a file says is hostile: everything here
is meant to run in a worker (see `holdfast.workers`), which has a deadline and a limit of memory.
The packages that read PDF, Word and web pages are optional, and imported only in this folder.
"""

from holdfast.extract.extracting import Extracted, extract
from holdfast.extract.kinds import FORMATS, FileKind, kind_of_file

__all__ = ["FORMATS", "Extracted", "FileKind", "extract", "kind_of_file"]
