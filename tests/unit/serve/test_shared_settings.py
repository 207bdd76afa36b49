"""Settings that nodes share, and those that each keeps."""

import tomllib

from palyra.serve.cluster.shared_home import with_own, without_own

_FIRST = b"""# ours
[server]
host = "10.0.0.1"
http_port = 1
requests = 2
[journal]
store = "env:STORE"
checkpoint_entries = 7
[cluster]
secret = "env:S"
name = "first"
[models]
default = "a/b"
"""
_SECOND = b"""
[server]
host = "10.0.0.2"
[cluster]
secret = "file:/s"
[models]
default = "mine/own"
"""


def test_what_says_where_a_node_is_stays_its_own() -> None:
    shared = without_own(_FIRST)
    assert b"# ours" in shared
    assert tomllib.loads(shared.decode()) == {
        "server": {"requests": 2},
        "journal": {"checkpoint_entries": 7},
        "models": {"default": "a/b"},
    }
    assert tomllib.loads(with_own(shared, _SECOND).decode()) == {
        "server": {"requests": 2, "host": "10.0.0.2"},
        "journal": {"checkpoint_entries": 7},
        "cluster": {"secret": "file:/s"},
        "models": {"default": "a/b"},
    }
    # Given back, nothing has changed.
    assert without_own(with_own(shared, _SECOND)) == shared or tomllib.loads(
        without_own(with_own(shared, _SECOND)).decode()
    ) == tomllib.loads(shared.decode())


def test_a_node_without_settings_has_those_of_the_others() -> None:
    assert with_own(without_own(_FIRST), b"") == without_own(_FIRST)
    assert without_own(b"") == b""
