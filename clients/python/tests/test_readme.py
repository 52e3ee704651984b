"""The README names every call and every argument of the client."""

from __future__ import annotations

import inspect
import re
import unittest
from pathlib import Path

from svc_control_tower import ControlTowerClient

README = Path(__file__).parents[1] / "README.md"


class ReadmeTest(unittest.TestCase):
    def test_every_call_stands_in_the_table(self) -> None:
        text = README.read_text("utf-8")
        table = dict(re.findall(r"^\| `(\w+)\((.*?)\)` \|", text, re.MULTILINE))
        calls = {
            name: list(inspect.signature(call).parameters)[1:]
            for name, call in inspect.getmembers(ControlTowerClient, inspect.isfunction)
            if not name.startswith("_")
        }
        told = {name: re.findall(r"[a-z_]+", arguments) for name, arguments in table.items()}
        self.assertEqual(told, calls)
