"""The rows of the acceptance table that are about clients."""

from __future__ import annotations

from typing import Any

from svc_control_tower import ClientConfigurationError, ControlTowerClient

from .player import TOKEN, Player, load_suite
from .test_exchanges import Replaying


class Named(Replaying):
    def replay_named(self, group: str, *names: str) -> None:
        cases = {case["name"]: case for case in load_suite()[group]}
        for name in names:
            with self.subTest(name):
                self.replay(cases[name])


class Row73(Named):
    """A client without a timeout, of https, of another host, with a limit of 0: nothing is sent."""

    def test_row(self) -> None:
        make: Any = ControlTowerClient  # calls that a type checker would refuse
        with Player([]) as player:
            base = f"http://127.0.0.1:{player.port}"
            with self.assertRaises(TypeError):
                make(base, TOKEN)
            for timeout in (0, -1, True, float("nan"), float("inf"), "1", None):
                with self.assertRaises(ClientConfigurationError, msg=repr(timeout)):
                    make(base, TOKEN, timeout=timeout)
            for url in (f"https://127.0.0.1:{player.port}", f"http://10.0.0.1:{player.port}", None):
                with self.assertRaises(ClientConfigurationError, msg=repr(url)):
                    make(url, TOKEN, timeout=1)
            client: Any = make(base, TOKEN, timeout=1)
            for limit in (0, 201, True, 1.0, "1"):
                for call in ("list_runs", "list_work_units", "list_events", "list_connections"):
                    with self.assertRaises(ClientConfigurationError, msg=repr(limit)):
                        getattr(client, call)(limit=limit)
        self.assertEqual(player.accepted, 0)


class Row74(Named):
    def test_row(self) -> None:
        self.replay_named(
            "broken", "one byte changed", "no request id", "302 to another place", "another run"
        )


class Row75(Named):
    def test_row(self) -> None:
        self.replay_named(
            "stream-broken",
            "unknown field",
            "sequence repeated",
            "another comment",
            "a frame over the bound",
            "cut in a frame",
            "cut behind a frame",
        )
