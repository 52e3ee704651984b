"""Answers: what a call gives back, and the checks that make bytes from a socket an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from .canonical import JsonObject, JsonSyntaxError, JsonValue, digest, parse
from .documents import Event
from .errors import ApiResponseError, IntegrityError, ProtocolError
from .transport import Exchange

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

RUN_KIND = "svc-product-spine-run"
EVENT_KIND = "svc-event"


@dataclass(frozen=True)
class Metadata:
    """What an answer said of itself."""

    status_code: int
    request_id: str
    content_digest: str


@dataclass(frozen=True)
class ApiResult(Generic[T_co]):
    """A verified answer."""

    value: T_co
    metadata: Metadata

    @property
    def request_id(self) -> str:
        return self.metadata.request_id


@dataclass(frozen=True)
class ListPage(Generic[T_co]):
    """One page. Pass ``next_cursor`` back unchanged; None is the end."""

    items: tuple[T_co, ...]
    next_cursor: str | None
    limit: int


JSON_TYPES = ("application/json", "application/vnd.svc.control-tower.v1+json")
STREAM_TYPE = "text/event-stream"

_REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_CODE = re.compile(r"[a-z][a-z0-9_]{2,63}")


def check_media_type(exchange: Exchange, *allowed: str) -> str:
    """The media type of an answer, if it is one of these in UTF-8."""
    values = exchange.values("content-type")
    name, _, rest = (values[0] if len(values) == 1 else "").partition(";")
    name = name.strip().lower()
    if name not in allowed or rest.strip().lower() not in ("", "charset=utf-8", 'charset="utf-8"'):
        raise ProtocolError(
            f"the answer ({exchange.status}) is not {' or '.join(allowed)} in UTF-8; "
            "it does not come from the evidence API or was refused before it"
        )
    return name


def check_request_id(exchange: Exchange) -> str:
    values = exchange.values("x-request-id")
    if len(values) != 1 or _REQUEST_ID.fullmatch(values[0]) is None:
        raise ProtocolError("the answer carries no well-formed X-Request-ID")
    return values[0]


def read_answer(exchange: Exchange, deadline: float) -> tuple[JsonObject, Metadata]:
    """Read and verify a JSON answer. An error envelope is raised as ApiResponseError."""
    check_media_type(exchange, *JSON_TYPES)
    request_id = check_request_id(exchange)

    def broken(message: str) -> ProtocolError:
        return ProtocolError(message, request_id=request_id)

    body = exchange.body(deadline)
    digests = exchange.values("x-svc-content-digest")
    if len(digests) != 1 or _DIGEST.fullmatch(digests[0]) is None:
        raise broken("the answer carries no well-formed X-SVC-Content-Digest")
    try:
        document = parse(body)
    except JsonSyntaxError as err:
        raise broken(f"the answer is no acceptable JSON: {err}") from err
    if not isinstance(document, dict):
        raise broken("the answer is no JSON object")
    if digest(document) != digests[0]:
        raise IntegrityError(
            "the answer does not have the digest its header states", request_id=request_id
        )
    metadata = Metadata(exchange.status, request_id, digests[0])
    if exchange.status >= 400:
        raise _api_error(document, metadata, exchange)
    if exchange.status != 200:
        raise broken(f"the answer has status {exchange.status}, which the API never gives")
    return document, metadata


def _api_error(
    document: JsonObject, metadata: Metadata, exchange: Exchange
) -> ApiResponseError | ProtocolError:
    error = document.get("error")
    if (
        isinstance(error, dict)
        and document.keys() == {"api_version", "schema_version", "kind", "ok", "error"}
        and document["api_version"] == "v1"
        and document["schema_version"] == "0.1"
        and document["kind"] == "svc-api-error"
        and document["ok"] is False
        and error.keys() - {"details"} == {"code", "message", "retryable"}
    ):
        code, message, retryable = error["code"], error["message"], error["retryable"]
        details = error.get("details", {})
        if (
            isinstance(code, str)
            and _CODE.fullmatch(code) is not None
            and isinstance(message, str)
            and message
            and isinstance(retryable, bool)
            and isinstance(details, dict)
        ):
            return ApiResponseError(
                status_code=metadata.status_code,
                code=code,
                message=message,
                retryable=retryable,
                details=details if "details" in error else None,
                request_id=metadata.request_id,
                retry_after=_retry_after(exchange),
            )
    return ProtocolError(
        f"the answer has status {metadata.status_code} and is no error envelope",
        request_id=metadata.request_id,
    )


def _retry_after(exchange: Exchange) -> int | None:
    values = exchange.values("retry-after")
    if len(values) == 1 and re.fullmatch(r"[0-9]{1,9}", values[0]):
        return int(values[0])
    return None


class Checked:
    """A verified answer whose kind and identity are being checked."""

    def __init__(self, document: JsonObject, metadata: Metadata) -> None:
        self.document = document
        self.metadata = metadata

    def broken(self, message: str) -> ProtocolError:
        return ProtocolError(message, request_id=self.metadata.request_id)

    def kind(self, kind: str, *, head: bool = True) -> Checked:
        document = self.document
        if document.get("kind") != kind or document.get("schema_version") != "0.1":
            raise self.broken(f"the answer is not {kind} of schema version 0.1")
        if head and (document.get("api_version") != "v1" or document.get("ok") is not True):
            raise self.broken("the answer is not a success of API version v1")
        return self

    def object(self, *path: str) -> JsonObject:
        """The object at this path."""
        value: JsonValue = self.document
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if not isinstance(value, dict):
            raise self.broken(f"the answer holds no object {'.'.join(path)}")
        return value

    def same(self, what: str, got: JsonValue, asked: str) -> Checked:
        """The answer must be about what was asked for."""
        if got != asked:
            raise self.broken(f"the answer is about another {what} than the one requested")
        return self

    def digest(self, what: str, stated: JsonValue, of: JsonObject) -> Checked:
        """A digest inside the answer must be that of what it stands for."""
        if not isinstance(stated, str) or digest(of) != stated:
            raise IntegrityError(
                f"{what} is not the digest of its value",
                request_id=self.metadata.request_id,
            )
        return self

    def result(self, _: type[T]) -> ApiResult[T]:
        return ApiResult(cast(T, self.document), self.metadata)

    def page(
        self, _: type[T], limit: int | None, filters: Mapping[str, str]
    ) -> tuple[ApiResult[ListPage[T]], list[JsonObject]]:
        """The answer as a page, and its items for the checks of one listing."""
        self.kind("svc-list", head=False)
        document, page = self.document, self.object("page")
        items, size = document.get("items"), page.get("limit")
        if not isinstance(items, list) or not all(isinstance(i, dict) for i in items):
            raise self.broken("the items of the page are no list of objects")
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= 200:
            raise self.broken("the limit of the page is not from 1 to 200")
        if limit is not None and size != limit:
            raise self.broken("the page has another limit than the one requested")
        if len(items) > size:
            raise self.broken("the page holds more items than its limit")
        missing: JsonValue = False  # is no cursor
        cursors = [place.get("next_cursor", missing) for place in (document, page)]
        given = [c for c in cursors if c is not missing]
        if not given or any(c != given[0] for c in given):
            raise self.broken("the two places of next_cursor do not agree")
        cursor = given[0]
        if cursor is not None and (not isinstance(cursor, str) or not cursor):
            raise self.broken("next_cursor is neither a string nor null")
        objects = cast("list[JsonObject]", items)
        for item in objects:
            for key, wanted in filters.items():
                if item.get(key) != wanted:
                    raise self.broken(f"the page holds an item of another {key} than asked for")
        value = ListPage(cast("tuple[T, ...]", tuple(objects)), cursor, size)
        return ApiResult(value, self.metadata), objects


_EVENT_KEYS = frozenset(Event.__annotations__)


def check_event(
    envelope: JsonValue, filters: Mapping[str, str], after: int, request_id: str | None
) -> Event:
    """Check one envelope: keys, identity, place behind ``after``, filters and payload."""

    def broken(message: str) -> ProtocolError:
        return ProtocolError(message, request_id=request_id)

    if not isinstance(envelope, dict):
        raise broken("an event is no object")
    if envelope.keys() != _EVENT_KEYS:
        raise broken("an event does not have exactly the sixteen keys of an envelope")
    if envelope["kind"] != EVENT_KIND or envelope["schema_version"] != "0.1":
        raise broken(f"an event is not {EVENT_KIND} of schema version 0.1")
    sequence = envelope["sequence"]
    if isinstance(sequence, bool) or not isinstance(sequence, int) or not 1 <= sequence < 10**18:
        raise broken("the sequence of an event is no integer from 1")
    if envelope["event_id"] != f"evt-{sequence:012d}":
        raise broken("the event_id of an event does not carry its sequence")
    if not isinstance(envelope["event_type"], str) or not envelope["event_type"]:
        raise broken("the event_type of an event is no text")
    if sequence <= after:
        raise broken(f"event {sequence} came after event {after}: sequences must rise")
    for key, wanted in filters.items():
        if envelope[key] != wanted:
            raise broken(f"an event has another {key} than the filter requests")
    payload = envelope["payload"]
    if not isinstance(payload, dict):
        raise broken("the payload of an event is no object")
    if envelope["payload_digest"] != digest(payload):
        raise IntegrityError(
            f"the payload of event {sequence} does not have its payload_digest",
            request_id=request_id,
        )
    return cast(Event, envelope)
