"""Bytes nobody meant: the parsers answer each with a value or their own error, never another."""

from __future__ import annotations

import json
import random
import unittest

from svc_control_tower import (
    ControlTowerClientError,
    JsonSyntaxError,
    TransportError,
    canonical_bytes,
    parse,
)
from svc_control_tower.stream import Bounds, EventStream
from svc_control_tower.transport import Exchange

from .player import load_suite
from .test_vectors import input_of, load

ROUNDS = 4000


def mutated(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randint(0, len(out))
        kind = rng.randrange(3)
        if kind == 0:
            out[at:at] = rng.choice(
                (b"{", b"]", b'"', b",", b":", b"\\u", b"-", b"0", b"e", b"\xff", b"\n\n", b"\r")
            )
        elif kind == 1:
            del out[at : at + rng.randint(1, 4)]
        else:
            out[at : at + 1] = bytes((rng.randrange(256),))
    return bytes(out)


class Json(unittest.TestCase):
    def test_parser(self) -> None:
        rng = random.Random(1)
        seeds = [input_of(v) for v in load("canon.json") if "input" in v]
        taken = 0
        for _ in range(ROUNDS):
            data = mutated(rng, rng.choice(seeds))
            try:
                value = parse(data)
            except JsonSyntaxError:
                continue
            taken += 1
            written = canonical_bytes(value)
            self.assertEqual(canonical_bytes(parse(written)), written, data)
            # What this parser takes, a lenient one reads the same way.
            self.assertEqual(canonical_bytes(json.loads(data.decode("utf-8-sig"))), written, data)
        self.assertGreater(taken, ROUNDS // 100)


class Chunks(Exchange):
    """An exchange whose answer is at hand, in pieces."""

    def __init__(self, chunks: list[bytes]) -> None:
        self.status = 200
        self.fields = [("content-type", "text/event-stream"), ("x-request-id", "r")]
        self._chunks = chunks

    def receive(self, deadline: float) -> bytes | None:
        return self._chunks.pop(0) if self._chunks else b""

    def close(self) -> None:
        self._chunks = []


def heard(chunks: list[bytes]) -> list[str]:
    """What a stream of these pieces gives, up to its end or its fault."""
    out: list[str] = []
    with EventStream(
        lambda _: Chunks([c for c in chunks if c]), 1, Bounds(1, None, None, 4096), 0, {}
    ) as stream:
        try:
            for event in stream:
                out.append(str(event.sequence))
        except TransportError:
            out.append("cut")
        except ControlTowerClientError as err:
            out.append(type(err).__name__)
    return [*out, str(stream.end_reason)]


class Streams(unittest.TestCase):
    def test_frames(self) -> None:
        rng = random.Random(2)
        case = next(c for c in load_suite()["stream"] if c["name"] == "both events")
        _, _, body = case["exchanges"][0]["response"][0]["text"].partition("\r\n\r\n")
        self.assertEqual(heard([body.encode()]), ["1", "2", "max-duration"])
        for _ in range(ROUNDS // 4):
            data = mutated(rng, body.encode())
            cut = rng.randint(0, len(data))
            # Where the network cuts a stream does not matter.
            self.assertEqual(heard([data]), heard([data[:cut], data[cut:]]), data)


if __name__ == "__main__":
    unittest.main()
