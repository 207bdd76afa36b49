"""`palyra witness`: vouch for the journals of others, and refuse the one that changes its story."""

import time
from pathlib import Path

import click

from palyra.cli.commands import group, verb
from palyra.cli.safe_text import clean
from palyra.cli.state import CliState
from palyra.core.errors import InvalidInput, Unavailable
from palyra.core.signed_notes import NoteKey, SigningKey

witness = group("witness", "Cosign checkpoints of other journals: show the key, run.")


@verb(witness, "key", help="Show the witness's public key, making it the first time.")
@click.option("--name", default="", metavar="NAME", help="Its name, such as attic.example.org.")
def key(state: CliState, name: str) -> None:
    public = _key(state.home, name).verifier.encode()
    if state.out.as_json:
        state.out.json({"key": public})
    else:
        state.out.line(public)


@verb(witness, "run", help="Answer on an address until it is ended.")
@click.option("--listen", default="127.0.0.1:8788", metavar="HOST:PORT", show_default=True)
@click.option(
    "--log",
    "logs",
    multiple=True,
    required=True,
    metavar="KEY",
    help="Public key of a journal to vouch for (palyra journal key).",
)
def run(state: CliState, listen: str, logs: tuple[str, ...]) -> None:
    from palyra.features.proof.witness import Witness
    from palyra.features.proof.witness_server import serve

    host, _, port = listen.rpartition(":")
    if not port.isdecimal():
        raise InvalidInput(f"{listen!r} is no address: name it as 127.0.0.1:8788")
    known = [NoteKey.decode(each) for each in logs]
    folder = state.home / "witness"
    server_side = Witness(_key(state.home), known, folder, lambda: int(time.time()))
    server_side.on_refused.connect(lambda why: state.out.line(f"refused: {clean(why)}"))
    try:
        server = serve(server_side, host.strip("[]"), int(port))
    except OSError as error:
        raise Unavailable(f"{listen} cannot be listened on: {error.strerror}") from None
    state.out.line(f"{server_side.key.name} vouches for {len(known)} logs on {listen}")
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


def _key(home: Path, name: str = "") -> SigningKey:
    from palyra.features.proof.witness import witness_key

    found = witness_key(home, name)
    if name and name != found.name:
        path = home / "keys" / "witness.key"
        raise InvalidInput(f"this witness is called {found.name}: remove {path} to start over")
    return found
