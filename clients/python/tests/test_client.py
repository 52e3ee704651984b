"""What the recorded exchanges cannot show: Python's own ways to misuse and to wait."""

from __future__ import annotations

import sys
import threading
import unittest
from typing import Any
from unittest import mock

from svc_control_tower import (
    ApiResponseError,
    ClientConfigurationError,
    ControlTowerClient,
    ProtocolError,
    RetryPolicy,
    TransportError,
    canonical,
    canonical_bytes,
    parse,
)

from .player import TOKEN, Player, load_suite


def case(group: str, name: str) -> dict[str, Any]:
    return next(c for c in load_suite()[group] if c["name"] == name)


def client_of(player: Player, retry: RetryPolicy | None = None) -> ControlTowerClient:
    return ControlTowerClient(f"http://localhost:{player.port}", TOKEN, timeout=20, retry=retry)


class Streams(unittest.TestCase):
    def test_outside_with(self) -> None:
        with Player([]) as player:
            stream = client_of(player).stream_events(idle_timeout=20)
            with self.assertRaises(ClientConfigurationError):
                iter(stream)
            with self.assertRaises(ClientConfigurationError):
                next(stream)
            self.assertIsNone(stream.request_id)
            self.assertIsNone(stream.end_reason)
        self.assertEqual(player.accepted, 0)

    def test_left_early(self) -> None:
        recorded = case("stream", "the client's count")
        with Player(recorded["exchanges"]) as player:
            stream = client_of(player).stream_events(idle_timeout=20, last_event_id=0)
            with stream:
                self.assertEqual(next(stream).sequence, 1)
            with self.assertRaises(ClientConfigurationError):
                next(stream)
            with self.assertRaises(ClientConfigurationError):
                stream.__enter__()
            self.assertEqual((stream.last_event_id, stream.end_reason), (1, None))
        self.assertEqual(player.faults, [])

    def test_a_fault_stays_and_an_end_stays(self) -> None:
        recorded = case("stream-broken", "another comment")
        with (
            Player(recorded["exchanges"]) as player,
            client_of(player).stream_events(idle_timeout=20, last_event_id=0) as stream,
        ):
            for _ in range(2):
                with self.assertRaises(ProtocolError):
                    next(stream)
        recorded = case("stream", "both events")
        with (
            Player(recorded["exchanges"]) as player,
            client_of(player).stream_events(idle_timeout=20, last_event_id=0) as stream,
        ):
            self.assertEqual([e.sequence for e in stream], [1, 2])
            self.assertEqual(list(stream), [])

    def test_arguments(self) -> None:
        with Player([]) as player:
            call: Any = client_of(player).stream_events
            with self.assertRaises(TypeError):
                call()
            for bad in (
                {"filters": {"run_id": "a"}, "run_id": "a"},
                {"filters": {"state": "proposed"}},
                {"filters": {"run_id": None}, "run_id": "a"},
                {"filters": ["run_id"]},
                {"run_id": 1},
                {"last_event_id": True},
                {"last_event_id": "1"},
                {"max_events": 0},
                {"max_events": True},
                {"max_seconds": 0},
                {"max_seconds": float("inf")},
                {"max_frame_bytes": 0},
                {"idle_timeout": 0},
                {"idle_timeout": True},
                {"idle_timeout": None},
            ):
                with self.assertRaises(ClientConfigurationError, msg=repr(bad)):
                    call(**{"idle_timeout": 20, **bad})
        self.assertEqual(player.accepted, 0)


class Calls(unittest.TestCase):
    def test_the_token_is_never_shown(self) -> None:
        client = ControlTowerClient("http://127.0.0.1", TOKEN, timeout=1)
        self.assertNotIn(TOKEN, repr(client))
        with self.assertRaises(ClientConfigurationError) as caught:
            ControlTowerClient("http://127.0.0.1", TOKEN + " ", timeout=1)
        self.assertNotIn(TOKEN, str(caught.exception))

    def test_nobody_listens(self) -> None:
        with self.assertRaisesRegex(TransportError, "is the server running"):
            ControlTowerClient("http://127.0.0.1:1", TOKEN, timeout=1).status()

    def test_proxies_of_the_environment_are_not_asked(self) -> None:
        recorded = case("answers", "run")
        proxy = {"http_proxy": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1"}
        with mock.patch.dict("os.environ", proxy), Player(recorded["exchanges"]) as player:
            self.assertEqual(
                client_of(player).get_run("run/demo:0001").value["run"]["state"], "proposed"
            )

    def test_a_report_as_an_object(self) -> None:
        recorded = case("answers", "inspection")
        report: Any = parse(recorded["args"]["report"].encode())
        with Player(recorded["exchanges"]) as player:
            answer = client_of(player).inspect_run_evidence(report)
        self.assertEqual(answer.value["snapshot"]["source"]["run_id"], "run/demo:0002")
        self.assertEqual(player.faults, [])

    def test_what_is_not_sent(self) -> None:
        with Player([]) as player:
            client: Any = client_of(player)
            bad: list[Any] = [
                {"a": float("nan")},
                {"a": "\ud800"},
                {1: 2},
                [],
                "{}",
                b"x" * (2 << 20 | 1),
            ]
            for report in bad:
                with self.assertRaises(ClientConfigurationError):
                    client.inspect_run_evidence(report)
            for run_id in ("", "a\n", "a\x7f", "\ud800", None, 1):
                with self.assertRaises(ClientConfigurationError):
                    client.get_run(run_id)
            for kwargs in ({"page_size": 0}, {"max_items": 0}, {"state": 1}):
                with self.assertRaises(ClientConfigurationError):
                    client.iter_runs(**kwargs)  # refused before the first item is asked for
        self.assertEqual(player.accepted, 0)

    def test_there_is_no_call_that_writes(self) -> None:
        names = {n for n in dir(ControlTowerClient) if not n.startswith("_")}
        self.assertEqual(
            names,
            {
                "status", "get_openapi", "get_metrics", "inspect_run_evidence", "list_runs",
                "iter_runs", "get_run", "get_run_attempts", "get_run_evidence", "list_work_units",
                "get_work_unit", "get_project", "list_connections", "get_connection",
                "list_events", "stream_events",
            },
        )  # fmt: skip

    def test_threads(self) -> None:
        exchanges = case("answers", "run")["exchanges"] * 8
        states: list[str] = []
        with Player(exchanges) as player:
            client = client_of(player)

            def ask() -> None:
                states.append(client.get_run("run/demo:0001").value["run"]["state"])

            threads = [threading.Thread(target=ask) for _ in exchanges]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(states, ["proposed"] * 8)


class Retries(unittest.TestCase):
    def error(self, retryable: bool = True, after: int | None = None) -> ApiResponseError:
        return ApiResponseError(
            status_code=503, code="overloaded", message="m", retryable=retryable, details=None,
            request_id="r", retry_after=after,
        )  # fmt: skip

    def test_waits(self) -> None:
        policy = RetryPolicy(max_attempts=10, base_delay=0.1, max_delay=1.0)
        gone = TransportError("gone")
        for attempt, most in ((1, 0.1), (2, 0.2), (4, 0.8), (5, 1.0), (9, 1.0)):
            with mock.patch("random.uniform", return_value=0.05) as drawn:
                self.assertEqual(policy.wait(attempt, gone), 0.05)
            drawn.assert_called_once_with(0, most)
        self.assertEqual(policy.wait(1, self.error(after=2)), 2.0)
        self.assertIsNone(policy.wait(1, self.error(after=61)))
        self.assertIsNone(policy.wait(10, gone))
        self.assertIsNone(policy.wait(1, self.error(retryable=False)))
        self.assertIsNone(policy.wait(1, ProtocolError("p")))
        deaf = RetryPolicy(base_delay=0, max_delay=0, honor_retry_after=False)
        self.assertEqual(deaf.wait(1, self.error(after=2)), 0.0)

    def test_the_client_waits_as_told(self) -> None:
        recorded = case("errors", "overloaded, then an answer")
        with Player(recorded["exchanges"]) as player:
            client = client_of(player, RetryPolicy(base_delay=0, max_delay=0))
            waits: list[float] = []
            with mock.patch.object(client, "_sleep", waits.append):
                client.get_run("run/demo:0001")
        self.assertEqual(waits, [1.0])  # the server's Retry-After

    def test_letters_that_only_fold_to_a_host_are_none(self) -> None:
        with self.assertRaises(ClientConfigurationError):
            ControlTowerClient("http://localho\u017ft", TOKEN, timeout=1)

    def test_numbers_beyond_every_float(self) -> None:
        client = ControlTowerClient("http://127.0.0.1", TOKEN, timeout=10**400)
        client.stream_events(idle_timeout=10**400)

    def test_policies_that_make_no_sense(self) -> None:
        make: Any = RetryPolicy
        for bad in (
            {"max_attempts": 0}, {"max_attempts": True}, {"max_attempts": 1.5}, {"base_delay": -1},
            {"max_delay": float("inf")}, {"max_delay": 10**400}, {"base_delay": 6},
            {"base_delay": "1"}, {"honor_retry_after": 1},
        ):  # fmt: skip
            with self.assertRaises(ClientConfigurationError, msg=repr(bad)):
                make(**bad)
        with self.assertRaises(ClientConfigurationError):
            ControlTowerClient("http://127.0.0.1", TOKEN, timeout=1, retry=make)


class Canonical(unittest.TestCase):
    def test_what_cannot_be_written(self) -> None:
        deep: Any = []
        for _ in range(512):
            deep = [deep]
        bad: list[Any] = [float("inf"), "\ud800", {"\udc00": 1}, {1: 2}, object(), deep, (1,)]
        for value in bad:
            with self.assertRaises(canonical.CanonicalError):
                canonical_bytes(value)

    def test_neither_the_stack_nor_the_process_limit_matters(self) -> None:
        before = sys.getrecursionlimit()
        text = b"[" * 512 + b"1" * 4300 + b"]" * 512
        limit = getattr(sys, "get_int_max_str_digits", lambda: 0)()
        try:
            sys.setrecursionlimit(200)
            if limit:
                sys.set_int_max_str_digits(640)
            self.assertEqual(canonical_bytes(parse(text)), text)
        finally:
            sys.setrecursionlimit(before)
            if limit:
                sys.set_int_max_str_digits(limit)


if __name__ == "__main__":
    unittest.main()
