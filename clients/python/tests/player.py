"""The suite of recorded exchanges, clients/exchanges, and the server that plays one."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any

SUITE = Path(__file__).resolve().parents[2] / "exchanges"
TOKEN = "recorded-exchange-token-0123456789"


def load_suite() -> dict[str, list[dict[str, Any]]]:
    suite = {file.stem: json.loads(file.read_bytes()) for file in sorted(SUITE.glob("*.json"))}
    if not suite:
        raise AssertionError(f"no recorded exchanges in {SUITE}")
    return suite


class Player:
    """Answers with recorded bytes, one connection after the other, and checks the requests."""

    def __init__(self, exchanges: list[dict[str, Any]]) -> None:
        self.exchanges = exchanges
        self.accepted = 0
        self.faults: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def __enter__(self) -> Player:
        return self

    def __exit__(self, *_: object) -> None:
        # A connection of our own wakes the accepting thread, which close() alone would not.
        self._stopping = True
        with socket.create_connection(("127.0.0.1", self.port)):
            self._accepting.join()
        self._listener.close()
        for thread in self._threads:
            thread.join()

    _stopping = False

    def _accept(self) -> None:
        while True:
            conn, _ = self._listener.accept()
            if self._stopping:
                conn.close()
                return
            number = self.accepted
            self.accepted += 1
            if number >= len(self.exchanges):
                self.faults.append(
                    f"request {number + 1} came, where {len(self.exchanges)} were expected"
                )
                conn.close()
                continue
            thread = threading.Thread(target=self._serve, args=(conn, self.exchanges[number]))
            self._threads.append(thread)
            thread.start()

    def _serve(self, conn: socket.socket, exchange: dict[str, Any]) -> None:
        with conn:
            conn.settimeout(60)
            try:
                self._compare(conn, exchange["request"])
                for part in exchange["response"] or []:
                    data = bytes.fromhex(part["hex"]) if "hex" in part else part["text"].encode()
                    data *= part.get("repeat", 1)
                    step = 1 if part.get("bytewise") else len(data) or 1
                    for start in range(0, len(data), step):
                        conn.sendall(data[start : start + step])
                if exchange.get("then") == "hold":
                    while conn.recv(65536):
                        pass
                elif exchange.get("then") == "drip":
                    conn.settimeout(0.02)
                    self._drip(conn)
            except AssertionError as err:
                self.faults.append(str(err))
            except OSError:
                pass  # the client has seen enough

    def _drip(self, conn: socket.socket) -> None:
        """A byte every 20 ms until the client leaves."""
        while True:
            try:
                if not conn.recv(1):
                    return
            except TimeoutError:
                conn.sendall(b"x")

    def _compare(self, conn: socket.socket, want: dict[str, Any]) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            more = conn.recv(65536)
            if not more:
                raise AssertionError("the head of the request was cut short")
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode("ascii").split("\r\n")
        if lines[0] != want["line"]:
            raise AssertionError(f"request line {lines[0]!r}, expected {want['line']!r}")
        fields = dict(line.split(": ", 1) for line in lines[1:])
        if len(fields) != len(lines) - 1:
            raise AssertionError(f"a field came twice in {lines}")
        if fields.pop("Host") not in (f"127.0.0.1:{self.port}", f"localhost:{self.port}"):
            raise AssertionError("the Host field is not the server's")
        if not fields.pop("User-Agent").startswith("svc-control-tower-"):
            raise AssertionError("the User-Agent is not the client's")
        if fields != want["fields"]:
            raise AssertionError(f"request fields {fields}, expected {want['fields']}")
        while len(body) < int(fields.get("Content-Length", "0")):
            body += conn.recv(65536)
        if body != want.get("body", "").encode():
            raise AssertionError(f"request body {body!r}, expected {want.get('body')!r}")
