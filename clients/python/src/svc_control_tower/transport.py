"""One HTTP exchange with the loopback server: one request, one connection, one deadline.

Written on a plain socket. ``http.client`` takes a head that was cut short for a whole one, and its
timeout holds for a single read, so that a server could drip bytes for ever; here a deadline holds
for the whole exchange. Nothing here knows proxies, redirects, cookies or TLS.
"""

from __future__ import annotations

import re
import socket
import time
from dataclasses import dataclass
from types import TracebackType

from .errors import ClientConfigurationError, ProtocolError, TransportError

__all__ = ["MAX_BODY_BYTES", "MAX_HEAD_BYTES", "Endpoint", "Exchange"]

MAX_BODY_BYTES = 64 << 20
"""The largest answer that is read."""

MAX_HEAD_BYTES = 64 << 10
"""The largest head of an answer that is read; the server's own are under 2 KiB."""

_BASE_URL = re.compile(
    r"http://(127\.0\.0\.1|localhost)(?::([0-9]{1,5}))?/?", re.IGNORECASE | re.ASCII
)
_STATUS_LINE = re.compile(r"HTTP/1\.[01] ([1-5][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?")
_FIELD = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*((?:[^\x00\r\n]*[^\x00\r\n\t ])?)[ \t]*")


@dataclass(frozen=True)
class Endpoint:
    """Where the server listens: always 127.0.0.1, whatever a resolver says of localhost."""

    authority: str
    port: int

    @classmethod
    def of(cls, base_url: object) -> Endpoint:
        match = _BASE_URL.fullmatch(base_url) if isinstance(base_url, str) else None
        port = int(match[2]) if match and match[2] else 80
        if match is None or not 1 <= port <= 65535:
            raise ClientConfigurationError(
                "base_url must be http://127.0.0.1:PORT or http://localhost:PORT, without a user, "
                "path, query or fragment: the server listens on the loopback interface only"
            )
        return cls(f"{match[1].lower()}:{port}", port)


class Exchange:
    """A request that was sent and the head of its answer; the body is read on demand."""

    status: int
    fields: list[tuple[str, str]]

    def __init__(self, endpoint: Endpoint, head: str, body: bytes, deadline: float) -> None:
        self._pending = b""
        try:
            self._socket = socket.create_connection(
                ("127.0.0.1", endpoint.port), timeout=_left(deadline)
            )
        except OSError as err:
            raise TransportError(
                f"cannot connect to 127.0.0.1:{endpoint.port}: {_why(err)}; is the server running?"
            ) from err
        try:
            self._send(head.encode("ascii") + body, deadline)
            self._read_head(deadline)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Exchange:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def values(self, name: str) -> list[str]:
        """Every value of one header field."""
        return [value for key, value in self.fields if key == name.lower()]

    def receive(self, deadline: float) -> bytes | None:
        """Some bytes of the body; nothing at its end, None when the deadline passes first."""
        if self._pending:
            data, self._pending = self._pending, b""
            return data
        left = deadline - time.monotonic()
        if left <= 0:
            return None
        try:
            self._socket.settimeout(left)
            return self._socket.recv(65536)
        except TimeoutError:
            return None
        except OSError as err:
            raise TransportError(f"the connection broke: {_why(err)}") from err

    def body(self, deadline: float) -> bytes:
        """The whole body, whose length the answer must state."""
        lengths = self.values("content-length")
        if self.values("transfer-encoding") or len(lengths) != 1:
            raise ProtocolError("the answer does not state its length in one Content-Length field")
        if re.fullmatch(r"[0-9]{1,18}", lengths[0]) is None:
            raise ProtocolError("the Content-Length of the answer is no number")
        left = int(lengths[0])
        if left > MAX_BODY_BYTES:
            raise ProtocolError(f"the answer is longer than {MAX_BODY_BYTES} bytes")
        parts: list[bytes] = []
        while left > 0:
            data = self.receive(deadline)
            if data is None:
                raise TransportError("the answer was not complete within the timeout")
            if not data:
                raise TransportError(f"the connection ended {left} bytes before the answer did")
            parts.append(data[:left])
            left -= len(data)
        return b"".join(parts)

    def _send(self, request: bytes, deadline: float) -> None:
        try:
            self._socket.settimeout(_left(deadline))
            self._socket.sendall(request)
        except (BrokenPipeError, ConnectionResetError):
            # A server at its cap answers a large body unread and closes; its answer may be there.
            return
        except OSError as err:
            raise TransportError(f"cannot send the request: {_why(err)}") from err

    def _read_head(self, deadline: float) -> None:
        head = bytearray()
        while (end := head.find(b"\r\n\r\n")) < 0:
            if len(head) > MAX_HEAD_BYTES:
                raise ProtocolError(f"the head of the answer is longer than {MAX_HEAD_BYTES} bytes")
            data = self.receive(deadline)
            if data is None:
                raise TransportError("no answer within the timeout")
            if not data:
                raise TransportError("the connection ended before the head of the answer did")
            head += data
        self._pending = bytes(head[end + 4 :])
        lines = head[:end].decode("latin-1").split("\r\n")
        match = _STATUS_LINE.fullmatch(lines[0])
        if match is None:
            raise ProtocolError("the answer does not start with an HTTP/1.x status line")
        self.status = int(match[1])
        self.fields = []
        for line in lines[1:]:
            field = _FIELD.fullmatch(line)
            if field is None:
                raise ProtocolError("the answer has a malformed header field")
            self.fields.append((field[1].lower(), field[2]))


def _left(deadline: float) -> float:
    """Seconds to the deadline; never 0, which would make a socket non-blocking."""
    return max(deadline - time.monotonic(), 0.001)


def _why(err: OSError) -> str:
    if isinstance(err, TimeoutError):
        return "no answer within the timeout"
    return err.strerror or type(err).__name__
