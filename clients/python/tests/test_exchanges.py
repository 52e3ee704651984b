"""Every recorded exchange, good and broken, as the Go client plays them."""

from __future__ import annotations

import unittest
from typing import Any

from svc_control_tower import (
    ApiResponseError,
    ApiResult,
    ClientConfigurationError,
    ControlTowerClient,
    ControlTowerClientError,
    IntegrityError,
    ListPage,
    ProtocolError,
    RetryPolicy,
    TransportError,
    digest,
)

from .player import TOKEN, Player, load_suite

ERRORS: dict[str, type[ControlTowerClientError]] = {
    "config": ClientConfigurationError,
    "transport": TransportError,
    "protocol": ProtocolError,
    "integrity": IntegrityError,
    "api": ApiResponseError,
}


def perform(case: dict[str, Any], port: int, got: dict[str, Any]) -> None:
    """Make the call of a case and note what came of it in the terms of the suite."""
    settings = case.get("client", {})
    policy = settings.get("retry")
    client = ControlTowerClient(
        settings.get("base_url", "http://127.0.0.1:{port}").replace("{port}", str(port)),
        settings.get("token", TOKEN),
        timeout=settings.get("timeout", 20),
        retry=RetryPolicy(**policy) if policy else None,
    )
    args = dict(case.get("args", {}))
    if case["call"] == "inspect_run_evidence":
        args["report"] = args["report"].encode()
    call = getattr(client, case["call"])
    if case["call"] == "iter_runs":
        got["items"] = []
        for run in call(**args):
            got["items"].append(run.value["run_id"])
        return
    if case["call"] == "stream_events":
        stream = call(**args)
        got["events"] = []
        try:
            with stream:
                for event in stream:
                    assert event.sequence == event.envelope["sequence"] == stream.last_event_id
                    assert event.event_type == event.envelope["event_type"]
                    got["events"].append(event.sequence)
            got["request_id"] = stream.request_id
        finally:
            got["end_reason"] = stream.end_reason
            got["last_event_id"] = stream.last_event_id or None
        return
    result: ApiResult[Any] = call(**args)
    got["request_id"] = result.request_id
    got["content_digest"] = result.metadata.content_digest
    assert result.metadata.status_code == 200
    if isinstance(result.value, ListPage):
        got["limit"] = result.value.limit
        got["next_cursor"] = result.value.next_cursor
        got["items"] = [
            item.get("event_id") or item.get("run_id") or item.get("id")
            for item in result.value.items
        ]
    else:
        assert digest(result.value) == result.metadata.content_digest


class Replaying(unittest.TestCase):
    maxDiff = None

    def replay(self, case: dict[str, Any]) -> None:
        want = dict(case["expect"])
        got: dict[str, Any] = {}
        with Player(case["exchanges"]) as player:
            try:
                perform(case, player.port, got)
            except ControlTowerClientError as err:
                got["error"] = next(k for k, v in ERRORS.items() if type(err) is v)
                if isinstance(err, ProtocolError):
                    got["request_id"] = err.request_id
                elif isinstance(err, ApiResponseError):
                    for key in ("status_code", "code", "request_id", "details", "retry_after"):
                        got[key] = getattr(err, key)
                    got["retryable"] = err.retryable or None
                    self.assertTrue(err.message)
        self.assertEqual(player.faults, [])
        self.assertEqual(player.accepted, len(case["exchanges"]))
        self.assertEqual({k: v for k, v in got.items() if v not in (None, [])}, want)


class Exchanges(Replaying):
    def test_all(self) -> None:
        for group, cases in load_suite().items():
            for case in cases:
                with self.subTest(f"{group}/{case['name']}"):
                    self.replay(case)


if __name__ == "__main__":
    unittest.main()
