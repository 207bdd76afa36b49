"""The text of a PDF, taken out by PDFium in a process of its own: a hostile file can hurt only that
process.

Run as a module it is that process: a PDF comes in on standard input, text goes out on standard
output, and it has given up most of memory, time, files and processes before it reads the first
byte.
"""

import sys
from typing import Any

from palyra.core.errors import InvalidInput, Unavailable
from palyra.system.child_process import ChildProcess

MOST_TEXT = 1 << 20
MOST_PAGES = 200
_MEMORY = 1 << 30
_CPU_S = 8
_NO_READER, _NOT_PDF = 3, 4


async def text_of(pdf: bytes) -> str:
    """Return a PDF's text, page after page. Raises InvalidInput for what is no PDF that can be
    read, Unavailable without a reader.
    """
    process = ChildProcess(
        [sys.executable, "-I", "-m", "palyra.tools.web.pdf"], stderr=False, cwd="/"
    )
    text, _ = await process.talk(pdf)
    match process.code:
        case 0:
            return text.decode("utf-8", "replace")
        case code if code == _NO_READER:
            raise Unavailable("reading PDF needs the package pypdfium2, which is not installed")
        case code if code == _NOT_PDF:
            raise InvalidInput("the PDF is damaged or protected by a password")
        case _:
            raise InvalidInput(
                "the PDF needs more time or memory than it is worth, or broke its reader"
            )


def _main() -> int:
    import codecs
    import ctypes
    import resource
    import signal

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it ends with the daemon
    ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    try:
        import pypdfium2  # type: ignore[import-untyped]
    except ImportError:
        return _NO_READER
    codecs.lookup("utf-16-le")  # PDFium's text comes in it
    # Everything is loaded: from here on no file is opened, none is written, and nothing is started.
    for what, most in (
        (resource.RLIMIT_AS, _MEMORY),
        (resource.RLIMIT_CPU, _CPU_S),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (most, most))
    try:
        document = pypdfium2.PdfDocument(sys.stdin.buffer.read())
    except (pypdfium2.PdfiumError, MemoryError):
        return _NOT_PDF
    sys.stdout.buffer.write(_read(document).encode("utf-8", "replace"))
    sys.stdout.buffer.flush()
    return 0


def _read(document: Any) -> str:
    parts: list[str] = []
    size = 0
    for number, page in enumerate(document, 1):
        if number > MOST_PAGES or size > MOST_TEXT:
            parts.append(f"[cut before page {number} of {len(document)}]")
            break
        text = page.get_textpage().get_text_bounded().replace("\r\n", "\n").strip()[:MOST_TEXT]
        size += len(text)
        parts.append(f"[page {number} of {len(document)}]\n{text}")
        page.close()
    return "\n\n".join(parts)


if __name__ == "__main__":
    sys.exit(_main())
