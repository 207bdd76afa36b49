"""Builds palyra.v1, the generated gRPC code, into the wheel, and into the source tree of an editable install.

Everything else about the package is in pyproject.toml.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).parent))
from scripts import proto_code


class BuildWithProtos(build_py):
    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            proto_code.write(Path(self.build_lib) / proto_code.PACKAGE)
        elif find_spec("grpc_tools") is not None:
            # `make run` installs without grpcio-tools: the daemon starts without the gRPC server, and `make grpc` adds both.
            proto_code.write()


setup(cmdclass={"build_py": BuildWithProtos})
