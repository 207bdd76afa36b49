"""Files that go along with a call: what the file tools refuse is neither sent nor written, and
nothing has no limit.
"""

import os
from pathlib import Path

import pytest

from palyra.core.errors import Forbidden, LimitExceeded, NotFound
from palyra.features.workers import file_transfer
from palyra.features.workers.protocol import MOST_FILES, Shipped
from palyra.tools.paths import PathGuard

FENCE = PathGuard()


def test_files_and_folders_are_packed_and_put_back_as_they_were(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    (here / "src").mkdir(parents=True)
    there.mkdir()
    (here / "src" / "a.txt").write_text("a")
    (here / "run.sh").write_text("#!/bin/sh\n")
    (here / "run.sh").chmod(0o755)
    (here / "src" / ".env").write_text("KEY=1")
    (here / "src" / "link").symlink_to("/etc/passwd")
    parcels = file_transfer.pack(FENCE, str(here), ["src", "run.sh"])
    assert [parcel.about.path for parcel in parcels] == ["src/a.txt", "run.sh"]
    contents = {parcel.about.sha256: parcel.content for parcel in parcels}
    files = [parcel.about for parcel in parcels]
    changes = file_transfer.unpack(FENCE, str(there), files, contents)
    assert [(change.path, change.change) for change in changes] == [
        ("src/a.txt", "created"),
        ("run.sh", "created"),
    ]
    assert os.access(there / "run.sh", os.X_OK)
    # The second time nothing is to be done, and nothing has to be sent.
    assert file_transfer.unpack(FENCE, str(there), files, {}) == ()
    assert set(file_transfer.known(FENCE, str(there), files)) == set(contents)


@pytest.mark.parametrize("name", ["../out", "/etc/passwd", ".env", ".git/config", "link/passwd"])
def test_what_a_file_tool_refuses_is_neither_sent_nor_written(tmp_path: Path, name: str) -> None:
    (tmp_path / "link").symlink_to("/etc")
    (tmp_path / ".env").write_text("KEY=1")
    with pytest.raises(Forbidden):
        file_transfer.pack(FENCE, str(tmp_path), [name])
    content = b"x"
    with pytest.raises(Forbidden):
        file_transfer.unpack(
            FENCE,
            str(tmp_path),
            [Shipped(name, file_transfer.digest(content), 1)],
            {file_transfer.digest(content): content},
        )


def test_there_is_a_limit_and_a_missing_file_is_named(tmp_path: Path) -> None:
    for number in range(MOST_FILES + 1):
        (tmp_path / f"{number}.txt").write_text("")
    with pytest.raises(LimitExceeded):
        file_transfer.pack(FENCE, str(tmp_path), ["."])
    with pytest.raises(NotFound, match=r"none\.txt"):
        file_transfer.pack(FENCE, str(tmp_path), ["none.txt"])
    assert file_transfer.pack(FENCE, str(tmp_path), ["none.txt"], missing_ok=True) == ()
