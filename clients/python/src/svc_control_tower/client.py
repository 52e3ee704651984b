"""The calls of the API."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, cast
from urllib.parse import quote

from .answers import RUN_KIND, ApiResult, Checked, ListPage, check_event, read_answer
from .canonical import CanonicalError, JsonObject, JsonSyntaxError, canonical_bytes, parse
from .documents import (
    Connection,
    ConnectionResponse,
    Event,
    InspectionResponse,
    MetricsResponse,
    ProjectResponse,
    Run,
    RunAttemptsResponse,
    RunEvidenceResponse,
    RunResponse,
    StatusResponse,
    WorkUnit,
    WorkUnitResponse,
)
from .errors import ClientConfigurationError, ControlTowerClientError, ProtocolError
from .retry import RetryPolicy
from .stream import DEFAULT_MAX_FRAME_BYTES, Bounds, EventStream
from .transport import Endpoint, Exchange

__all__ = ["MAX_REPORT_BYTES", "ControlTowerClient"]

T = TypeVar("T")

MAX_REPORT_BYTES = 2 << 20
"""The largest report the server reads."""

_TOKEN = re.compile(r"[A-Za-z0-9._~-]{32,4096}")
_SUB_RESOURCE = re.compile(r"/(?=(?:attempts|evidence|decisions)\Z)")
_FILTERS = ("project_id", "run_id", "work_unit_id", "event_type")
_USER_AGENT = "svc-control-tower-python/0.1.0"
_JSON = "application/json"
_LONGEST = 1e8  # three years; a socket refuses timeouts that overflow its C types


class ControlTowerClient:
    """A client of the local evidence read API.

    One HTTP request per call (more only under a retry policy), always to 127.0.0.1. Every answer
    is verified before it is returned: its digest, its kind, that it is about what was asked, and
    the digests inside it. Safe to use from several threads.
    """

    def __init__(
        self, base_url: str, token: str, *, timeout: float, retry: RetryPolicy | None = None
    ) -> None:
        """``timeout`` is in seconds and holds for a whole exchange, from connect to last byte."""
        self._endpoint = Endpoint.of(base_url)
        if not isinstance(token, str) or _TOKEN.fullmatch(token) is None:
            raise ClientConfigurationError(
                "token must be 32 to 4096 characters from letters, digits and -._~, "
                "the value the server has in SVC_CONTROL_TOWER_TOKEN"
            )
        self._token = token
        self._timeout = _seconds("timeout", timeout)
        if retry is not None and not isinstance(retry, RetryPolicy):
            raise ClientConfigurationError("retry must be a RetryPolicy or None")
        self._retry = retry
        self._sleep: Callable[[float], None] = time.sleep

    def __repr__(self) -> str:
        return f"ControlTowerClient('http://{self._endpoint.authority}', token=[redacted])"

    def status(self) -> ApiResult[StatusResponse]:
        """What the server can do and within which limits."""
        return self._get("/status").kind("svc-control-tower-status").result(StatusResponse)

    def get_openapi(self) -> ApiResult[dict[str, Any]]:
        """The OpenAPI document of the running build."""
        answer = self._get("/openapi.json")
        document = answer.document
        if (
            document.get("x-svc-kind") != "svc-openapi"
            or document.get("x-svc-schema-version") != "0.1"
            or not str(document.get("openapi")).startswith("3.")
        ):
            raise answer.broken("the answer is not the OpenAPI 3 document of this API")
        answer.object("info")
        answer.object("paths")
        return ApiResult(cast("dict[str, Any]", document), answer.metadata)

    def get_metrics(self) -> ApiResult[MetricsResponse]:
        """The counters of the running process."""
        return (
            self._get("/metrics")
            .kind("svc-api-operational-metrics", head=False)
            .result(MetricsResponse)
        )

    def inspect_run_evidence(
        self, report: Mapping[str, Any] | bytes
    ) -> ApiResult[InspectionResponse]:
        """The inspection snapshot of a report, as an object or as the bytes of its file.

        Nothing is stored. Never retried.
        """
        if isinstance(report, bytes):
            body = report
        elif isinstance(report, Mapping):
            try:
                body = canonical_bytes(cast(JsonObject, dict(report)))
            except CanonicalError as err:
                raise ClientConfigurationError(f"report is no JSON object: {err}") from err
        else:
            raise ClientConfigurationError("report must be an object or the bytes of one")
        if len(body) > MAX_REPORT_BYTES:
            raise ClientConfigurationError(
                f"report is longer than the {MAX_REPORT_BYTES} bytes the server reads"
            )
        answer = self._answer("POST", "/run-evidence/inspect", {}, body)
        answer.kind("svc-control-tower-inspection-response")
        snapshot, source = answer.object("snapshot"), answer.object("snapshot", "source")
        if snapshot.get("kind") != "svc-control-tower-snapshot":
            raise answer.broken("the answer holds no inspection snapshot")
        answer.digest("snapshot_digest", answer.document.get("snapshot_digest"), snapshot)
        try:
            sent = parse(body)
        except JsonSyntaxError as err:
            raise answer.broken("the server accepted a report that is no acceptable JSON") from err
        if not isinstance(sent, dict):
            raise answer.broken("the server accepted a report that is no object")
        answer.same("run", source.get("run_id"), str(sent.get("run_id")))
        answer.digest("evidence_report_digest", source.get("evidence_report_digest"), sent)
        return answer.result(InspectionResponse)

    def list_runs(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        state: str | None = None,
        project_id: str | None = None,
    ) -> ApiResult[ListPage[Run]]:
        """One page of runs, by id."""
        filters = _given(state=state, project_id=project_id)
        answer = self._list("/runs", limit, cursor, filters)
        result, items = answer.page(Run, limit, filters)
        for item in items:
            _check_run(answer, item)
        return result

    def iter_runs(
        self,
        *,
        state: str | None = None,
        project_id: str | None = None,
        page_size: int = 50,
        max_items: int | None = None,
    ) -> Iterator[ApiResult[Run]]:
        """Every run, page after page; each result carries the metadata of its page."""
        _limit("page_size", page_size)
        if max_items is not None:
            _count("max_items", max_items)
        _given(state=state, project_id=project_id)
        return self._runs(state, project_id, page_size, max_items)

    def _runs(
        self, state: str | None, project_id: str | None, page_size: int, max_items: int | None
    ) -> Iterator[ApiResult[Run]]:
        cursor: str | None = None
        seen: set[str] = set()
        count = 0
        while True:
            page = self.list_runs(
                limit=page_size, cursor=cursor, state=state, project_id=project_id
            )
            for run in page.value.items:
                yield ApiResult(run, page.metadata)
                count += 1
                if count == max_items:
                    return
            cursor = page.value.next_cursor
            if cursor is None:
                return
            if cursor in seen:
                raise ProtocolError(
                    "the server gave the same cursor twice, so the list would never end",
                    request_id=page.request_id,
                )
            seen.add(cursor)

    def get_run(self, run_id: str) -> ApiResult[RunResponse]:
        """One run."""
        answer = self._get(_path("/runs/", "run_id", run_id))
        answer.kind("svc-control-tower-run-response")
        _check_run(answer, answer.object("run")).same("run", answer.object("run")["run_id"], run_id)
        return answer.result(RunResponse)

    def get_run_attempts(self, run_id: str) -> ApiResult[RunAttemptsResponse]:
        """The attempts of a run."""
        answer = self._get(_path("/runs/", "run_id", run_id) + "/attempts")
        answer.kind("svc-control-tower-run-attempts-response")
        answer.same("run", answer.document.get("run_id"), run_id)
        if not isinstance(answer.document.get("attempts"), list):
            raise answer.broken("the answer holds no list of attempts")
        return answer.result(RunAttemptsResponse)

    def get_run_evidence(self, run_id: str) -> ApiResult[RunEvidenceResponse]:
        """The retained evidence report of a run, its digest recomputed."""
        answer = self._get(_path("/runs/", "run_id", run_id) + "/evidence")
        answer.kind("svc-control-tower-run-evidence-response")
        answer.same("run", answer.document.get("run_id"), run_id)
        report = answer.object("evidence_report")
        if report.get("kind") != "svc-run-evidence-report":
            raise answer.broken("the answer holds no evidence report")
        answer.same("run", report.get("run_id"), run_id)
        stated = answer.document.get("evidence_report_digest")
        return answer.digest("evidence_report_digest", stated, report).result(RunEvidenceResponse)

    def list_work_units(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        project_id: str | None = None,
    ) -> ApiResult[ListPage[WorkUnit]]:
        """One page of work units, by id; a project confines what they count."""
        answer = self._list("/work-units", limit, cursor, _given(project_id=project_id))
        result, items = answer.page(WorkUnit, limit, {})
        _check_ids(answer, items)
        return result

    def get_work_unit(self, work_unit_id: str) -> ApiResult[WorkUnitResponse]:
        """One work unit and its revisions."""
        answer = self._get(_path("/work-units/", "work_unit_id", work_unit_id))
        answer.kind("svc-control-tower-work-unit-response")
        answer.same("work unit", answer.object("work_unit").get("id"), work_unit_id)
        return answer.result(WorkUnitResponse)

    def get_project(self, project_id: str) -> ApiResult[ProjectResponse]:
        """What the runs of one project add up to."""
        answer = self._get(_path("/projects/", "project_id", project_id))
        answer.kind("svc-control-tower-project-response")
        answer.same("project", answer.object("project").get("project_id"), project_id)
        return answer.result(ProjectResponse)

    def list_connections(
        self, *, limit: int | None = None, cursor: str | None = None
    ) -> ApiResult[ListPage[Connection]]:
        """One page of connectors, by id."""
        answer = self._list("/connections", limit, cursor, {})
        result, items = answer.page(Connection, limit, {})
        _check_ids(answer, items)
        return result

    def get_connection(self, connection_id: str) -> ApiResult[ConnectionResponse]:
        """One connector, free of secrets."""
        answer = self._get(_path("/connections/", "connection_id", connection_id))
        answer.kind("svc-control-tower-connection-response")
        answer.same("connection", answer.object("connection").get("id"), connection_id)
        return answer.result(ConnectionResponse)

    def list_events(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        project_id: str | None = None,
        run_id: str | None = None,
        work_unit_id: str | None = None,
        event_type: str | None = None,
    ) -> ApiResult[ListPage[Event]]:
        """One page of events, by sequence; every envelope is checked as on the stream."""
        filters = _given(
            project_id=project_id, run_id=run_id, work_unit_id=work_unit_id, event_type=event_type
        )
        answer = self._list("/events", limit, cursor, filters)
        result, items = answer.page(Event, limit, filters)
        after = 0
        for item in items:
            after = check_event(item, filters, after, answer.metadata.request_id)["sequence"]
        return result

    def stream_events(
        self,
        *,
        idle_timeout: float,
        last_event_id: int | None = None,
        max_events: int | None = None,
        max_seconds: float | None = None,
        max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES,
        filters: Mapping[str, str] | None = None,
        project_id: str | None = None,
        run_id: str | None = None,
        work_unit_id: str | None = None,
        event_type: str | None = None,
    ) -> EventStream:
        """The event stream, to be used in a ``with`` statement, which opens it.

        ``idle_timeout`` is how many seconds may pass without a frame; the server writes one at
        least every 15, so give 20 or more. Without ``last_event_id`` the stream starts at the
        newest event, with it after that event; 0 replays all. Each filter may be given in
        ``filters`` or by its name, not both.
        """
        bounds = Bounds(
            _seconds("idle_timeout", idle_timeout),
            None if max_events is None else _count("max_events", max_events),
            None if max_seconds is None else _seconds("max_seconds", max_seconds),
            _count("max_frame_bytes", max_frame_bytes),
        )
        if last_event_id is not None:
            if isinstance(last_event_id, bool) or not isinstance(last_event_id, int):
                raise ClientConfigurationError("last_event_id must be an integer")
            if not 0 <= last_event_id < 10**18:
                raise ClientConfigurationError("last_event_id must be from 0, of at most 18 digits")
        named = _given(
            project_id=project_id, run_id=run_id, work_unit_id=work_unit_id, event_type=event_type
        )
        if filters is not None and not isinstance(filters, Mapping):
            raise ClientConfigurationError("filters must be a mapping of names to values")
        for name, value in (filters or {}).items():
            if name not in _FILTERS:
                raise ClientConfigurationError(f"filters takes {', '.join(_FILTERS)} only")
            if name in named:
                raise ClientConfigurationError(f"{name} is given twice: by its name and in filters")
            named.update(_given(**{name: value}))
        named = {name: named[name] for name in _FILTERS if name in named}
        fields = {"Accept": "text/event-stream"}
        if last_event_id is not None:
            fields["Last-Event-ID"] = str(last_event_id)

        def connect(deadline: float) -> Exchange:
            return self._exchange("GET", "/events/stream", named, fields, b"", deadline)

        return EventStream(connect, self._timeout, bounds, last_event_id, named)

    def _list(
        self, path: str, limit: int | None, cursor: str | None, filters: Mapping[str, str]
    ) -> Checked:
        query: dict[str, str] = {}
        if limit is not None:
            query["limit"] = str(_limit("limit", limit))
        query.update(_given(cursor=cursor))
        query.update(filters)
        return self._get(path, query)

    def _get(self, path: str, query: Mapping[str, str] | None = None) -> Checked:
        attempt = 1
        while True:
            try:
                return self._answer("GET", path, query or {}, b"")
            except ControlTowerClientError as err:
                wait = None if self._retry is None else self._retry.wait(attempt, err)
                if wait is None:
                    raise
            self._sleep(wait)
            attempt += 1

    def _answer(self, method: str, path: str, query: Mapping[str, str], body: bytes) -> Checked:
        deadline = time.monotonic() + self._timeout
        fields = {"Accept": _JSON}
        if method == "POST":
            fields["Content-Type"] = _JSON
            fields["Content-Length"] = str(len(body))
        with self._exchange(method, path, query, fields, body, deadline) as exchange:
            return Checked(*read_answer(exchange, deadline))

    def _exchange(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        fields: Mapping[str, str],
        body: bytes,
        deadline: float,
    ) -> Exchange:
        target = "/api/v1" + path
        if query:
            target += "?" + "&".join(f"{k}={quote(v, safe='')}" for k, v in query.items())
        lines = [
            f"{method} {target} HTTP/1.1",
            f"Host: {self._endpoint.authority}",
            f"User-Agent: {_USER_AGENT}",
            f"X-SVC-UI-Token: {self._token}",
            *(f"{name}: {value}" for name, value in fields.items()),
            "Connection: close",
        ]
        return Exchange(self._endpoint, "\r\n".join(lines) + "\r\n\r\n", body, deadline)


def _check_run(answer: Checked, run: JsonObject) -> Checked:
    if run.get("kind") != RUN_KIND or run.get("schema_version") != "0.1":
        raise answer.broken(f"a run is not {RUN_KIND} of schema version 0.1")
    if not isinstance(run.get("run_id"), str) or not isinstance(run.get("state"), str):
        raise answer.broken("a run has no id or no state")
    return answer


def _check_ids(answer: Checked, items: list[JsonObject]) -> None:
    if not all(isinstance(item.get("id"), str) for item in items):
        raise answer.broken("an item of the page has no id")


def _path(collection: str, name: str, value: object) -> str:
    """The path of one resource. An id that ends like a sub-resource has that slash escaped."""
    text = _text(name, value)
    if not text:
        raise ClientConfigurationError(f"{name} must not be empty")
    return collection + _SUB_RESOURCE.sub("%2F", quote(text, safe="/:"))


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ClientConfigurationError(f"{name} must be a string")
    if any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000 for c in value):
        raise ClientConfigurationError(
            f"{name} must not hold control characters or lone surrogates"
        )
    return value


def _given(**values: str | None) -> dict[str, str]:
    return {name: _text(name, value) for name, value in values.items() if value is not None}


def _count(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ClientConfigurationError(f"{name} must be an integer from 1")
    return value


def _limit(name: str, value: object) -> int:
    if _count(name, value) > 200:
        raise ClientConfigurationError(f"{name} must be from 1 to 200")
    return cast(int, value)


def _seconds(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ClientConfigurationError(f"{name} must be a number of seconds")
    # An integer may be beyond every float, and is compared as it is.
    if (isinstance(value, float) and not math.isfinite(value)) or value <= 0:
        raise ClientConfigurationError(f"{name} must be finite and above 0 seconds")
    return float(min(value, _LONGEST))
