"""File names as the most forgiving file system compares them: case, width and invisible characters
make no difference.
"""

import unicodedata


def fold(name: str) -> str:
    """Return one name as NTFS (streams, trailing dots) and HFS+ (invisible characters) would
    compare it, in lower case.
    """
    if not name.isascii():
        visible = "".join(char for char in name if unicodedata.category(char) != "Cf")
        name = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())
    return name.lower().partition(":")[0].rstrip(". ") or name
