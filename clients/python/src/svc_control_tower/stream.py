"""The event stream: strict frames, bounded in bytes and time, never silently reconnected."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType

from .answers import (
    JSON_TYPES,
    STREAM_TYPE,
    check_event,
    check_media_type,
    check_request_id,
    read_answer,
)
from .canonical import JsonSyntaxError, parse
from .documents import Event
from .errors import ClientConfigurationError, ControlTowerClientError, ProtocolError, TransportError
from .transport import Exchange

__all__ = ["DEFAULT_MAX_FRAME_BYTES", "EventStream", "StreamedEvent"]

DEFAULT_MAX_FRAME_BYTES = 1 << 20

_SERVER_REASONS = frozenset({"max-duration", "shutdown", "store-error"})
_RETRY = re.compile(r"retry: [0-9]{1,18}")
_SEQUENCE = re.compile(r"[1-9][0-9]{0,17}")


@dataclass(frozen=True)
class StreamedEvent:
    """One event. Delivery is at-least-once across connections: drop an event_id already seen."""

    sequence: int
    event_type: str
    envelope: Event


@dataclass(frozen=True)
class Bounds:
    """When the client itself ends a stream or gives it up."""

    idle_timeout: float
    max_events: int | None
    max_seconds: float | None
    max_frame_bytes: int


class EventStream:
    """An iterator of StreamedEvent; usable only inside a ``with`` statement, once.

    It ends on a marker of the server or a bound of the caller's; ``end_reason`` then tells which.
    To go on, open another stream with ``last_event_id``.
    """

    def __init__(
        self,
        connect: Callable[[float], Exchange],
        timeout: float,
        bounds: Bounds,
        last_event_id: int | None,
        filters: Mapping[str, str],
    ) -> None:
        self._connect = connect
        self._timeout = timeout
        self._bounds = bounds
        self._filters = dict(filters)
        self._exchange: Exchange | None = None
        self._entered = False
        self._buffer = bytearray()
        self._started = False  # the retry block came
        self._count = 0
        self._ends_at: float | None = None
        self._failure: ControlTowerClientError | None = None
        self._last_event_id = last_event_id
        self._end_reason: str | None = None
        self._request_id: str | None = None

    @property
    def request_id(self) -> str | None:
        """The id of the answer; None before the stream is open."""
        return self._request_id

    @property
    def last_event_id(self) -> int | None:
        """The sequence of the last event that was yielded; at first the one asked for."""
        return self._last_event_id

    @property
    def end_reason(self) -> str | None:
        """Why the stream ended; None until it has.

        max-duration, shutdown or store-error by the server; client-max-events or
        client-max-seconds by the caller's bounds.
        """
        return self._end_reason

    def __enter__(self) -> EventStream:
        if self._entered:
            raise ClientConfigurationError("a stream opens once: call stream_events again")
        self._entered = True
        deadline = time.monotonic() + self._timeout
        exchange = self._connect(deadline)
        try:
            if check_media_type(exchange, STREAM_TYPE, *JSON_TYPES) != STREAM_TYPE:
                _, metadata = read_answer(exchange, deadline)
                raise ProtocolError(
                    "the server answered the stream with a document", request_id=metadata.request_id
                )
            self._request_id = check_request_id(exchange)
            if exchange.status != 200:
                raise self._broken(
                    f"the stream has status {exchange.status} and is no error envelope"
                )
            if exchange.values("content-length") or exchange.values("transfer-encoding"):
                raise self._broken("the stream states a length or a transfer coding")
        except BaseException:
            exchange.close()
            raise
        self._exchange = exchange
        if self._bounds.max_seconds is not None:
            self._ends_at = time.monotonic() + self._bounds.max_seconds
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hang up. Leaving the ``with`` statement does it."""
        if self._exchange is not None:
            self._exchange.close()
            self._exchange = None

    def __iter__(self) -> Iterator[StreamedEvent]:
        if self._exchange is None and self._end_reason is None and self._failure is None:
            raise ClientConfigurationError("a stream must be used inside a with statement")
        return self

    def __next__(self) -> StreamedEvent:
        if self._end_reason is not None:
            raise StopIteration
        if self._failure is not None:
            raise self._failure
        if self._exchange is None:
            raise ClientConfigurationError("a stream must be used inside a with statement")
        try:
            event = self._next(self._exchange)
        except ControlTowerClientError as err:
            self._failure = err
            self.close()
            raise
        if event is None:
            self.close()
            raise StopIteration
        self._count += 1
        self._last_event_id = event.sequence
        return event

    def _broken(self, message: str) -> ProtocolError:
        return ProtocolError(message, request_id=self._request_id)

    def _next(self, exchange: Exchange) -> StreamedEvent | None:
        if self._bounds.max_events is not None and self._count >= self._bounds.max_events:
            self._end_reason = "client-max-events"
            return None
        while True:
            block = self._block(exchange)
            if block is None:
                self._end_reason = "client-max-seconds"
                return None
            lines = block.split("\n")
            if not self._started:
                if len(lines) != 1 or _RETRY.fullmatch(lines[0]) is None:
                    raise self._broken("the stream does not start with its retry field alone")
                self._started = True
                continue
            if lines[0].startswith(":"):
                reason = self._comment(lines)
                if reason is None:
                    continue
                self._expect_end(exchange)
                self._end_reason = reason
                return None
            return self._event(lines)

    def _comment(self, lines: list[str]) -> str | None:
        """The reason of an end marker; None for a keepalive."""
        if len(lines) == 1:
            if lines[0] == ": keepalive":
                return None
            head, mark, reason = lines[0].partition(": stream-ended reason=")
            if mark and not head and reason in _SERVER_REASONS:
                return reason
        raise self._broken("the stream holds a comment that is neither keepalive nor an end marker")

    def _event(self, lines: list[str]) -> StreamedEvent:
        fields: dict[str, str] = {}
        for line in lines:
            name, mark, value = line.partition(": ")
            if not mark or name not in ("id", "event", "data"):
                raise self._broken("an event holds a field other than id, event and data")
            if name in fields:
                raise self._broken(f"an event holds the field {name} twice")
            fields[name] = value
        if len(fields) != 3:
            raise self._broken("an event does not hold each of id, event and data")
        try:
            envelope = parse(fields["data"].encode("utf-8"))
        except JsonSyntaxError as err:
            raise self._broken(f"the data of an event is no acceptable JSON: {err}") from err
        if not isinstance(envelope, dict):
            raise self._broken("the data of an event is no object")
        sequence = envelope.get("sequence")
        if _SEQUENCE.fullmatch(fields["id"]) is None or isinstance(sequence, bool):
            raise self._broken("the id of an event is no sequence")
        if sequence != int(fields["id"]) or envelope.get("event_type") != fields["event"]:
            raise self._broken("the id or event field of an event is not that of its envelope")
        event = check_event(envelope, self._filters, self._last_event_id or 0, self._request_id)
        return StreamedEvent(event["sequence"], event["event_type"], event)

    def _block(self, exchange: Exchange) -> str | None:
        """The next block without the blank line that ends it; None when max_seconds have passed.

        The idle clock runs only while this waits: a slow caller is no silent server.
        """
        idle_at = time.monotonic() + self._bounds.idle_timeout
        scanned = 0
        bound = self._bounds.max_frame_bytes
        while True:
            if self._ends_at is not None and time.monotonic() >= self._ends_at:
                return None
            end = self._buffer.find(b"\n\n", scanned)
            size = end + 2 if end >= 0 else len(self._buffer)
            if size > bound:
                raise self._broken(f"a frame of the stream is longer than {bound} bytes")
            if self._buffer.find(b"\r", scanned, size) >= 0:
                raise self._broken("the stream holds a carriage return")
            if end >= 0:
                block = bytes(self._buffer[:end])
                del self._buffer[:size]
                try:
                    return block.decode("utf-8")
                except UnicodeDecodeError as err:
                    raise self._broken("the stream is not UTF-8") from err
            scanned = max(len(self._buffer) - 1, 0)
            data = exchange.receive(
                idle_at if self._ends_at is None else min(idle_at, self._ends_at)
            )
            if data is None:
                if self._ends_at is not None and self._ends_at <= idle_at:
                    return None
                raise TransportError(
                    f"the stream was silent for {self._bounds.idle_timeout} seconds"
                )
            if not data:
                raise TransportError("the stream ended without its end marker")
            self._buffer += data

    def _expect_end(self, exchange: Exchange) -> None:
        """After the end marker nothing may follow; how the connection closes does not matter."""
        if not self._buffer:
            deadline = time.monotonic() + min(self._bounds.idle_timeout, self._timeout)
            try:
                self._buffer += exchange.receive(deadline) or b""
            except TransportError:
                return
        if self._buffer:
            raise self._broken("the stream continues after its end marker")
