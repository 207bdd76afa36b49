"""A daemon process seen through its gRPC door, as a test holds it."""

import json
import time
from pathlib import Path
from typing import Any

import grpc
import pytest

from palyra.v1 import admin_pb2, admin_pb2_grpc, sessions_pb2, sessions_pb2_grpc
from tests.daemon import DaemonProcess

PATIENCE_S = 20.0


class Door:
    def __init__(self, process: DaemonProcess) -> None:
        self.process = process
        self.address = json.loads((process.home / "daemon.json").read_text())["grpc"]
        self.channel = grpc.insecure_channel(self.address)
        self.metadata = (("authorization", f"Bearer {process.token}"),)
        self.sessions = sessions_pb2_grpc.SessionsStub(self.channel)
        self.admin = admin_pb2_grpc.AdminStub(self.channel)

    def session(self) -> str:
        return str(
            self.call(
                self.sessions.FindOrCreate, sessions_pb2.SessionsFindOrCreateRequest()
            ).session_id
        )

    def call(self, method: Any, request: Any, **more: Any) -> Any:
        return method(request, metadata=self.metadata, timeout=PATIENCE_S, **more)

    def alive(self) -> bool:
        return bool(self.call(self.admin.Status, admin_pb2.AdminStatusRequest()).version)

    @property
    def resident_kb(self) -> int:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.partition("VmRSS:")[2].split()[0])


def refused(call: Any) -> Any:
    with pytest.raises(grpc.RpcError) as error:
        call()
    return error.value


def code(call: Any) -> grpc.StatusCode:
    return refused(call).code()


def eventually(check: Any) -> bool:
    end = time.monotonic() + PATIENCE_S
    while not check():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)  # Another process's doing: there is nothing to wait on but the clock.
    return True
