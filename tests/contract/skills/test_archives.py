"""Archives that mean harm: nothing lands outside the skill's folder, and reading stops at a byte
limit.
"""

import os
import resource
import stat
import struct
import zipfile
import zlib
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palyra.core.errors import InvalidInput, LimitExceeded, PalyraError
from palyra.features.skills import package
from palyra.features.skills.records import Record
from palyra.features.skills.store import Skills
from palyra.tools import archives
from tests.tools_at_work import tree

HEAD = b"---\nname: packed\ndescription: From an archive.\n---\nBody.\n"


def archive(*entries: tuple[str | zipfile.ZipInfo, bytes], head: bytes | None = HEAD) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        if head is not None:
            made.writestr("SKILL.md", head)
        for name, data in entries:
            made.writestr(name, data)
    return buffer.getvalue()


def special(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = mode << 16
    return info


def raw_name(data: bytes, shown: str, stored: bytes) -> bytes:
    """The archive with a name that Python would not write, in both of its places."""
    assert len(shown.encode()) == len(stored)
    return data.replace(shown.encode(), stored)


def attempt(tmp_path: Path, data: bytes) -> PalyraError:
    """Try to install the archive; nothing may be left of it anywhere."""
    (tmp_path / "evil.zip").write_bytes(data)
    (tmp_path / "bystander").write_text("untouched")
    before = tree(tmp_path)
    with pytest.raises(PalyraError) as caught:
        Skills(tmp_path / "skills").install(tmp_path / "evil.zip", confirm="0" * 64)
    assert tree(tmp_path) == before
    return caught.value


NAMES = [
    "../evil",
    "a/../../evil",
    "a/../evil",
    "/etc/evil",
    "//host/evil",
    "./evil",
    "a//evil",
    "..",
    "a/..",
    "C:/evil",
    "C:evil",
    "c:\\evil",
    "..\\evil",
    "a\\..\\..\\evil",
    "\\\\host\\share",
    "file:stream",
    "nul",
    "CON.txt",
    "a/Aux",
    "com1.md",
    "lpt9",
    "COM¹",
    "trailing.",
    "trailing ",
    " leading",
    "what?",
    "star*",
    'quote"',
    "pipe|",
    "new\nline",
    "bell\x07",
    "right\u202eleft",
    "/".join("abcdefghi"),
    "x" * 300,
    "~root\x7f",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_not_plain_is_refused(tmp_path: Path, name: str) -> None:
    assert isinstance(attempt(tmp_path, archive((name, b"evil"))), InvalidInput)


@pytest.mark.parametrize("name", ["../evil/", "/evil/", "a/../../evil/", "C:\\evil/"])
def test_folders_have_plain_names_too(tmp_path: Path, name: str) -> None:
    assert isinstance(
        attempt(tmp_path, archive((special(name, stat.S_IFDIR | 0o777), b""))), InvalidInput
    )


def test_a_name_with_a_nul_in_it_is_refused(tmp_path: Path) -> None:
    data = raw_name(archive(("good.txtXXevil", b"evil")), "good.txtXXevil", b"good.txt\0/evil")
    assert isinstance(attempt(tmp_path, data), InvalidInput)


@pytest.mark.parametrize(
    "kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK]
)
def test_links_and_devices_are_refused(tmp_path: Path, kind: int) -> None:
    assert isinstance(
        attempt(tmp_path, archive((special("link", kind | 0o777), b"/etc/passwd"))), InvalidInput
    )


def test_a_link_and_then_a_file_through_it_is_refused(tmp_path: Path) -> None:
    data = archive((special("out", stat.S_IFLNK | 0o777), b".."), ("out/evil", b"evil"))
    assert isinstance(attempt(tmp_path, data), InvalidInput)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    "names",
    [
        ("a.txt", "a.txt"),
        ("a.txt", "A.TXT"),
        ("a", "a/b"),
        ("a/b", "A"),
        ("a/x", "A/y"),
        ("é.txt", "e\u0301.txt"),
        ("ﬁle", "file"),
        ("straße", "STRASSE"),
        ("skill.md",),
        ("SKILL.md",),
    ],
)
def test_two_names_for_one_file_are_refused(tmp_path: Path, names: tuple[str, ...]) -> None:
    assert isinstance(
        attempt(tmp_path, archive(*((name, name.encode()) for name in names))), InvalidInput
    )


def test_an_encrypted_entry_is_refused(tmp_path: Path) -> None:
    data = bytearray(archive(("a.txt", b"secret")))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.rindex(signature) + offset
        data[at] |= 1
    assert isinstance(attempt(tmp_path, bytes(data)), InvalidInput)


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_ways_of_packing_that_are_not_needed_are_refused(tmp_path: Path, method: int) -> None:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as made:
        made.writestr("SKILL.md", HEAD)
    assert isinstance(attempt(tmp_path, buffer.getvalue()), InvalidInput)


def test_a_file_that_unpacks_to_a_thousand_times_its_size_is_refused(tmp_path: Path) -> None:
    assert isinstance(attempt(tmp_path, archive(("bomb", bytes(7 << 20)))), LimitExceeded)


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    assert isinstance(
        attempt(tmp_path, archive(("noise", os.urandom(archives.MOST_FILE_BYTES + 1)))),
        LimitExceeded,
    )


def test_files_over_the_limit_together_are_refused(tmp_path: Path) -> None:
    half = bytes(range(256)) * 64
    packed = b"".join(half + os.urandom(1 << 10) for _ in range(100))
    entries = [
        (f"part{number}", packed) for number in range(archives.MOST_BYTES // len(packed) + 1)
    ]
    assert isinstance(attempt(tmp_path, archive(*entries)), LimitExceeded)


def test_too_many_files_are_refused(tmp_path: Path) -> None:
    assert isinstance(
        attempt(tmp_path, archive(*((f"{number}", b"") for number in range(600)))), LimitExceeded
    )


def test_an_archive_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "large.zip").open("wb") as file:
        file.truncate(package.MOST_ARCHIVE + 1)
    with pytest.raises(LimitExceeded):
        package.read(tmp_path / "large.zip")


def test_a_size_that_lies_does_not_lift_the_limit(tmp_path: Path) -> None:
    """The header says ten bytes; what counts is what comes out."""
    data = bytearray(archive(("bomb", bytes(20 << 20))))
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = data.rindex(signature) + offset
        data[at : at + 4] = struct.pack("<I", 10)
    assert isinstance(attempt(tmp_path, bytes(data)), InvalidInput | LimitExceeded)


def test_entries_that_share_their_bytes_are_limited_by_what_comes_out(tmp_path: Path) -> None:
    """Many entries in the directory point to one packed file."""
    assert isinstance(attempt(tmp_path, _overlapping(400)), LimitExceeded | InvalidInput)


def _overlapping(copies: int) -> bytes:
    kernel = os.urandom(2000) * 100
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(kernel) + packer.flush()
    crc = zlib.crc32(kernel)
    fixed = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 0, crc, len(packed), len(kernel), 1, 0)
    body = b"PK\x03\x04" + fixed + b"a" + packed
    one = (
        b"PK\x01\x02" + struct.pack("<H", 20) + fixed + struct.pack("<HHHII", 0, 0, 0, 0, 0) + b"a"
    )
    end = struct.pack("<HHHHIIH", 0, 0, copies, copies, len(one) * copies, len(body), 0)
    return body + one * copies + b"PK\x05\x06" + end


def test_a_bomb_costs_little_memory(tmp_path: Path) -> None:
    bomb = archive(*((f"bomb{number}", bytes(7 << 20)) for number in range(20)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert isinstance(attempt(tmp_path, bomb), LimitExceeded)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


@given(st.binary(max_size=200))
@settings(max_examples=100)
def test_noise_is_refused_in_our_own_words(data: bytes) -> None:
    with pytest.raises(PalyraError):
        package.from_zip(data)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_an_archive_with_a_wrong_byte_is_read_or_refused_in_our_own_words(
    data: st.DataObject,
) -> None:
    whole = bytearray(archive(("a/b.txt", b"hello" * 50)))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = package.from_zip(bytes(whole))
    except PalyraError:
        return
    assert all(package.check_path(path) for path in found)


def test_a_folder_with_links_or_pipes_is_refused(tmp_path: Path) -> None:
    for make in (
        lambda at: at.symlink_to("/etc/passwd"),
        lambda at: at.symlink_to(".."),
        os.mkfifo,
    ):
        source = tmp_path / "source"
        source.mkdir()
        (source / "SKILL.md").write_bytes(HEAD)
        make(source / "odd")
        with pytest.raises(InvalidInput):
            package.read(source)
        (source / "odd").unlink()
        (source / "SKILL.md").unlink()
        source.rmdir()


@pytest.mark.parametrize("around", ["", "packed/", "another-name/"])
def test_an_honest_archive_is_installed_with_or_without_a_folder_around_it(
    tmp_path: Path, around: str
) -> None:
    data = archive(
        (f"{around}SKILL.md", HEAD), (f"{around}references/größe.md", b"text"), head=None
    )
    (tmp_path / "good.zip").write_bytes(data)
    skills = Skills(tmp_path / "skills")
    record = skills.install(
        tmp_path / "good.zip", confirm=skills.look(tmp_path / "good.zip").digest
    )
    assert isinstance(record, Record)
    assert sorted(record.files) == ["SKILL.md", "references/größe.md"]
    assert skills.read(record, "references/größe.md") == b"text"
    modes = {
        stat.S_IMODE(path.lstat().st_mode)
        for path in (tmp_path / "skills" / "installed").rglob("*")
    }
    assert modes == {0o600, 0o700}


def test_a_folder_and_its_archive_have_the_same_digest(tmp_path: Path) -> None:
    source = tmp_path / "packed"
    (source / "a").mkdir(parents=True)
    (source / "SKILL.md").write_bytes(HEAD)
    (source / "a" / "b.txt").write_bytes(b"b")
    (tmp_path / "packed.zip").write_bytes(archive(("a/b.txt", b"b")))
    assert package.read(source).digest == package.read(tmp_path / "packed.zip").digest


@pytest.mark.parametrize("data", [b"", b"PK", archive(("readme.md", b""), head=None)])
def test_what_is_no_skill_is_refused(tmp_path: Path, data: bytes) -> None:
    assert isinstance(attempt(tmp_path, data), InvalidInput)
