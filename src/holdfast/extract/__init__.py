"""The text of a file: plain in any encoding, web pages, PDF, Word and e-books.

kinds → bounds → html → pdf · word → epub → extracting. The content of a file is hostile:
everything here is meant to run in a worker (see `holdfast.workers`), which has a deadline and a
memory limit. The packages that read PDF, Word and web pages are optional, and imported only in this
folder.
"""

from holdfast.extract.bounds import Extracted
from holdfast.extract.extracting import extract
from holdfast.extract.kinds import FileKind, kind_of_file

__all__ = ["Extracted", "FileKind", "extract", "kind_of_file"]
