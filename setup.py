"""Builds into the wheel what is not committed: palyra.v1, the generated gRPC code, and the console.
An editable install gets the first in its source tree; `make run` builds the second.

Everything else about the package is in pyproject.toml.
"""

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).parent))
from scripts import console, proto_code


class BuildWithGeneratedFiles(build_py):
    def run(self) -> None:
        if not self.editable_mode:
            # What an earlier build left there would be in this wheel, too.
            shutil.rmtree(Path(self.build_lib) / "palyra", ignore_errors=True)
            try:
                console.build()
            except console.Failed as error:
                raise SystemExit(
                    f"error: a wheel without the console is not built: {error}"
                ) from error
            # The list of files was made before there were these.
            self.data_files = self._get_data_files()
        super().run()
        if not self.editable_mode:
            proto_code.write(Path(self.build_lib) / proto_code.PACKAGE)
        elif find_spec("grpc_tools") is not None:
            # `make run` has no grpcio-tools: the daemon starts without gRPC, and
            # `make grpc` adds both.
            proto_code.write()


setup(cmdclass={"build_py": BuildWithGeneratedFiles})
