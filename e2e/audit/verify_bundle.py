#!/usr/bin/env python3
"""Verify an exported audit bundle with nothing but a public key.

usage: verify_bundle.py <bundle.ndjson> <public key: 64 hex digits>...

Checkpoints count by those keys and by the bundle's own that one of them vouches for.

A second implementation of docs/audit-ledger.md, written from that page: it shares no code with the
platform. Prints one line and exits 0 when the bundle holds, else 1.
"""

import base64
import hashlib
import json
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

FORMAT = "platform-audit-bundle/v2"
ENTRY = {"v", "tenant", "seq", "event_id", "ts", "source", "actor", "action", "target", "outcome", "request_id", "details"}
LINES = {
    "header": {"kind", "format", "tenant", "from_seq", "to_seq", "prev_hash", "since", "until", "created_at", "keys"},
    "entry": {"kind", "entry", "prev_hash", "hash"},
    "checkpoint": {"kind", "seq", "hash", "ts", "key_id", "signature"},
    "trailer": {"kind", "count", "checkpoints", "head", "sha256", "last_seq", "verification", "key_id", "signature"},
}

OPTIONAL = {"header": {"acknowledgements"}}


class Fault(Exception):
    """What is wrong with the bundle, at which entry."""

    def __init__(self, seq, reason, detail):
        super().__init__(f"entry {seq}: {reason}: {detail}")


def number(value):
    """The form of RFC 8785, which is ECMAScript's of a double."""
    if isinstance(value, int):
        if abs(value) > 2**53:
            raise ValueError(f"{value} is no exact double")
        return str(value)
    digits = repr(value)
    mantissa, _, exponent = digits.partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, part = mantissa.lstrip("-").partition(".")
    part = "" if part == "0" else part
    figures = (whole + part).lstrip("0")
    if not figures:
        return "0"
    point = len(whole) + int(exponent or 0) - (len(whole + part) - len(figures))
    figures = figures.rstrip("0")
    count = len(figures)
    if count <= point <= 21:
        return sign + figures + "0" * (point - count)
    if 0 < point <= 21:
        return sign + figures[:point] + "." + figures[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + figures
    power = f"e{point - 1:+d}"
    return sign + figures[0] + ("." + figures[1:] if count > 1 else "") + power


def canonical(value):
    """The form of RFC 8785."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, (int, float)):
        return number(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "[" + ",".join(canonical(v) for v in value) + "]"
    members = sorted(value.items(), key=lambda m: m[0].encode("utf-16-be"))
    return "{" + ",".join(canonical(k) + ":" + canonical(v) for k, v in members) + "}"


def parse(raw, seq):
    """A line, if it is spelt in the one way that it may be."""
    try:
        line = json.loads(raw.decode("utf-8"))
        again = canonical(line).encode("utf-8")
    except (ValueError, OverflowError, RecursionError, UnicodeError) as e:
        raise Fault(seq, "format", f"not a line of a bundle: {e}") from e
    if again != raw:
        raise Fault(seq, "format", "a line is not in canonical form")
    if not isinstance(line, dict) or line.keys() - OPTIONAL.get(line.get("kind"), set()) != LINES.get(line.get("kind")):
        raise Fault(seq, "format", "a line of an unknown kind, or with other members")
    return line


def unbase64(text):
    """Canonical JSON does not bound how base64 is spelt, so that this must."""
    raw = base64.b64decode(text, validate=True)
    if base64.b64encode(raw).decode() != text:
        raise ValueError("another spelling of base64")
    return raw


def key_id(raw):
    return hashlib.sha256(raw).hexdigest()[:16]


def vouched(keys, item):
    """The key of a header's list, if one of keys has signed it."""
    try:
        raw = unbase64(item["public_key"])
        key = Ed25519PublicKey.from_public_bytes(raw)
    except (ValueError, TypeError, KeyError):
        return None
    if key_id(raw) != item.get("key_id"):
        return None
    text = f"platform-audit-key/v1\n{item['key_id']}\n{item['public_key']}\n{item.get('created_at', '')}\n"
    for vouch in item.get("vouches", []):
        try:
            keys[vouch["by"]].verify(unbase64(vouch["signature"]), text.encode())
            return key
        except (InvalidSignature, ValueError, TypeError, KeyError):
            continue
    return None


def reach(keys, listed):
    """All keys that can be trusted: those given, those that they vouch for, and so on."""
    keys = dict(keys)
    more = True
    while more:
        more = False
        for item in listed:
            if item.get("key_id") not in keys:
                key = vouched(keys, item)
                if key is not None:
                    keys[item["key_id"]], more = key, True
    return keys


def signed_by(keys, tenant, mark):
    key = keys.get(mark["key_id"])
    if key is None:
        raise Fault(mark["seq"], "checkpoint", f"signed by the unknown key {mark['key_id']}")
    text = f"platform-audit-checkpoint/v1\n{tenant}\n{mark['seq']}\n{mark['hash']}\n{mark['ts']}\n"
    try:
        signature = unbase64(mark["signature"])
        key.verify(signature, text.encode())
    except (InvalidSignature, ValueError, TypeError) as e:
        raise Fault(mark["seq"], "checkpoint", f"the signature is wrong {e}") from e


def ending(keys, line, seq, whole):
    """What the trailer tells of the chain beyond the lines before it."""
    key = keys.get(line["key_id"])
    if key is None:
        raise Fault(seq, "format", f"the trailer is signed by the unknown key {line['key_id']}")
    text = f"platform-audit-export/v1\n{line['sha256']}\n{canonical({**line, 'signature': ''})}\n"
    try:
        key.verify(unbase64(line["signature"]), text.encode("utf-8"))
    except (InvalidSignature, ValueError, TypeError) as e:
        raise Fault(seq, "format", f"the signature of the trailer is wrong {e}") from e
    verdict = line["verification"]
    if verdict["verified"] is not True:
        raise Fault(verdict["first_bad_seq"] or seq, verdict["reason"] or "format", "the server could not verify its ledger")
    if line["last_seq"] > 0 and line["count"] == 0:
        raise Fault(1, "gap", "the bundle is empty, the ledger is not")
    if whole and seq < line["last_seq"]:
        raise Fault(seq + 1, "gap", f"the ledger went on to {line['last_seq']}")


def leave(base, accepted, first):
    """Where the chain goes on behind the entries that two people have accepted as they are."""
    if first == 1 and accepted.hexdigest() != base["digest"]:
        raise Fault(base["seq"], "hash", "the entries up to it are not those that were acknowledged")
    return {"seq": base["seq"], "hash": base["hash"]}


def verify(stream, keys):
    """Checks all of a bundle and gives what it holds."""
    digest = hashlib.sha256()
    head = None
    hashes = {}
    marks = 0
    last_mark = 0
    for raw in stream:
        seq = head["seq"] + 1 if head else 1
        if not raw.endswith(b"\n"):
            raise Fault(seq, "format", "the bundle is cut off")
        line = parse(raw[:-1], seq)
        kind = line["kind"]
        if (kind == "header") != (head is None):
            raise Fault(seq, "format", "a bundle has one header, its first line")
        if kind == "header":
            first, last, tenant = line["from_seq"], line["to_seq"], line["tenant"]
            if line["format"] != FORMAT or first < 1 or (first == 1 and line["prev_hash"] != "0" * 64):
                raise Fault(seq, "format", "not a header of this format")
            keys = reach(keys, line["keys"])
            whole = line["until"] is None
            head = {"seq": first - 1, "hash": line["prev_hash"]}
            base = max(line.get("acknowledgements", []), key=lambda a: a["seq"], default=None)
            accepted = hashlib.sha256() if base and base["seq"] >= first else None
        elif kind == "entry":
            entry = line["entry"]
            if accepted and entry["seq"] <= base["seq"]:
                if entry["seq"] < seq or entry["tenant"] != tenant:
                    raise Fault(entry["seq"], "link", "out of order, or of another chain")
                accepted.update(raw)
                head = {"seq": entry["seq"], "hash": line["hash"]}
                hashes[entry["seq"]] = line["hash"]
                digest.update(raw)
                continue
            if accepted:
                head, seq, accepted = leave(base, accepted, first), base["seq"] + 1, None
            if entry["seq"] != seq:
                raise Fault(seq, "gap", f"the next entry is {entry['seq']}")
            if line["prev_hash"] != head["hash"] or entry["tenant"] != tenant:
                raise Fault(seq, "link", "it does not follow the entry before it")
            if entry.keys() != ENTRY or entry["v"] != 1 or marks or seq > last:
                raise Fault(seq, "format", "not an entry, or not in its place")
            form = canonical(entry).encode("utf-8")
            if hashlib.sha256(line["prev_hash"].encode() + b"\n" + form).hexdigest() != line["hash"]:
                raise Fault(seq, "hash", "the entry was changed")
            head = {"seq": seq, "hash": line["hash"]}
            hashes[seq] = line["hash"]
        elif kind == "checkpoint" and base and line["seq"] <= base["seq"]:
            marks += 1
        elif kind == "checkpoint":
            if hashes.get(line["seq"]) != line["hash"] or line["seq"] <= last_mark:
                raise Fault(line["seq"], "checkpoint", "it was made of another entry")
            signed_by(keys, tenant, line)
            marks, last_mark = marks + 1, line["seq"]
        else:
            reached = head["seq"]
            if accepted:
                reached = max(reached, base["seq"])
                if whole:
                    leave(base, accepted, first)
            if head["seq"] < last:
                raise Fault(seq, "gap", f"the range goes on to {last}")
            if line["head"] != head or line["count"] != len(hashes) or line["checkpoints"] != marks or line["sha256"] != digest.hexdigest():
                raise Fault(seq, "format", "the trailer tells of another bundle")
            ending(keys, line, reached, whole)
            if stream.read(1):
                raise Fault(seq, "format", "something follows the trailer")
            return tenant, len(hashes), marks, last_mark
        digest.update(raw)
    raise Fault(head["seq"] + 1 if head else 1, "format", "the bundle is cut off: it has no trailer")


def main(path, *texts):
    keys = {}
    for text in texts:
        raw = bytes.fromhex(text)
        keys[key_id(raw)] = Ed25519PublicKey.from_public_bytes(raw)
    try:
        with open(path, "rb") as stream:
            tenant, entries, marks, signed = verify(stream, keys)
    except (Fault, KeyError, TypeError, AttributeError) as e:
        print(f"NOT VERIFIED: {e}")
        return 1
    print(f"VERIFIED: {entries} entries of {tenant}, {marks} checkpoints, signed up to {signed}")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
