"""The shared vectors: the same bytes and digests as the server and the Go client."""

from __future__ import annotations

import hashlib
import json
import struct
import unittest
from pathlib import Path
from typing import Any

from svc_control_tower import canonical
from svc_control_tower.answers import check_event

VECTORS = Path(__file__).resolve().parents[3] / "libs" / "evidence" / "vectors"


def load(name: str) -> Any:
    return json.loads((VECTORS / name).read_bytes())


def input_of(vector: dict[str, Any]) -> bytes:
    if "input" in vector:
        text: str = vector["input"]
        return text.encode("utf-8")
    if "input_hex" in vector:
        return bytes.fromhex(vector["input_hex"])
    return "".join(text * times for text, times in vector["input_runs"]).encode("utf-8")


class Row77(unittest.TestCase):
    def test_documents(self) -> None:
        for vector in load("canon.json"):
            with self.subTest(vector["name"]):
                data = input_of(vector)
                written = canonical.canonical_bytes(canonical.parse(data))
                self.assertEqual(written, vector.get("c1", data.decode()).encode("utf-8"))
                self.assertEqual(canonical.digest_bytes(written), "sha256:" + vector["sha256"])

    def test_refused(self) -> None:
        for vector in load("refused.json"):
            with self.subTest(vector["name"]):
                with self.assertRaises(canonical.JsonSyntaxError) as caught:
                    canonical.parse(input_of(vector))
                self.assertEqual(caught.exception.reason, vector["reason"])

    def test_floats(self) -> None:
        for vector in load("floats.json"):
            (number,) = struct.unpack(">d", bytes.fromhex(vector["bits"]))
            with self.subTest(vector["c1"]):
                self.assertEqual(canonical.canonical_bytes(number).decode(), vector["c1"])
                read = canonical.parse(vector["c1"].encode())
                self.assertEqual(struct.pack(">d", read).hex(), vector["bits"])

    def test_fixtures(self) -> None:
        fixtures = load("fixtures.json")
        for name in ("run", "report"):
            document = fixtures[name]["document"]
            self.assertEqual(len(canonical.canonical_bytes(document)), fixtures[name]["c1_bytes"])
        self.assertEqual(
            canonical.digest(fixtures["report"]["document"]), fixtures["report"]["digest"]
        )
        self.assertEqual(
            canonical.digest(fixtures["imported_run"]["document"]),
            fixtures["imported_run"]["digest"],
        )
        created: dict[str, canonical.JsonValue] = {
            "schema_version": "0.1",
            "kind": "product-spine-cli-run",
            "projection": fixtures["run"]["document"],
        }
        self.assertEqual(canonical.digest(created), fixtures["run"]["create_request_digest"])
        for vector in fixtures["events"]:
            envelope = canonical.canonical_bytes(vector["envelope"])
            self.assertEqual(len(envelope), vector["envelope_bytes"])
            self.assertEqual(
                canonical.digest(vector["envelope"]["payload"]), vector["payload_digest"]
            )
            leaf = hashlib.sha256(b"\0" + envelope).hexdigest()
            self.assertEqual(leaf, vector["leaf_hash"])
            check_event(vector["envelope"], {}, vector["envelope"]["sequence"] - 1, None)


if __name__ == "__main__":
    unittest.main()
