"""The JSON of the evidence product: one strict parser and the canonical form of every digest.

The parser refuses what would let two readers see two documents: duplicate keys, NaN, floats
beyond binary64, integers over 4,300 digits, halves of surrogate pairs, nesting over 512. The
standard library's parser takes some of these, and its recursion depends on the caller's stack, so
this one is a loop. Integers stay exact, a number with a point or an exponent stays a float.
"""

from __future__ import annotations

import hashlib
import math
import re
from typing import TypeAlias

__all__ = [
    "MAX_DEPTH",
    "MAX_INT_DIGITS",
    "CanonicalError",
    "JsonObject",
    "JsonSyntaxError",
    "JsonValue",
    "canonical_bytes",
    "digest",
    "digest_bytes",
    "parse",
]

JsonValue: TypeAlias = bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"] | None
JsonObject: TypeAlias = dict[str, JsonValue]

MAX_DEPTH = 512
"""How many arrays and objects may stand inside each other."""

MAX_INT_DIGITS = 4300
"""How many digits an integer may have, its sign apart."""

# int() and str() refuse long integers under a limit the process may set as low as 640 digits.
_CHUNK = 600


class CanonicalError(ValueError):
    """A value that JSON cannot hold."""


class JsonSyntaxError(ValueError):
    """A text that is no acceptable JSON. It never quotes the text, which may hold a secret."""

    def __init__(self, reason: str, offset: int, detail: str) -> None:
        super().__init__(f"{reason} at character {offset}: {detail}")
        self.reason = reason
        """invalid_json, duplicate_key, too_deep or invalid_utf8."""
        self.offset = offset
        """Where, in characters from the start (in bytes for invalid_utf8)."""


def parse(data: bytes) -> JsonValue:
    """Read one JSON document: UTF-8, at most one byte order mark before it, nothing after it."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as err:
        raise JsonSyntaxError("invalid_utf8", err.start, "the bytes are not UTF-8") from None
    return _Parser(text).document()


_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_HEX4 = re.compile(r"[0-9a-fA-F]{4}")
_WORDS: dict[str, tuple[str, bool | None]] = {
    "t": ("true", True),
    "f": ("false", False),
    "n": ("null", None),
}
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 1 if text.startswith("\ufeff") else 0

    def fail(
        self, detail: str, at: int | None = None, reason: str = "invalid_json"
    ) -> JsonSyntaxError:
        return JsonSyntaxError(reason, self.pos if at is None else at, detail)

    def space(self) -> None:
        match = _SPACE.match(self.text, self.pos)
        assert match is not None  # the pattern matches the empty text
        self.pos = match.end()

    def peek(self) -> str:
        return self.text[self.pos] if self.pos < len(self.text) else ""

    def document(self) -> JsonValue:
        # One frame for every open array (key None) or object (key of the member being read).
        open_: list[tuple[list[JsonValue] | JsonObject, str | None]] = []
        while True:
            self.space()
            char = self.peek()
            value: JsonValue
            if char == "{" or char == "[":
                if len(open_) >= MAX_DEPTH:
                    raise self.fail(
                        f"arrays and objects are nested more than {MAX_DEPTH} deep",
                        reason="too_deep",
                    )
                self.pos += 1
                self.space()
                if char == "{":
                    members: JsonObject = {}
                    if self.peek() != "}":
                        open_.append((members, self.key(members)))
                        continue
                    value = members
                else:
                    elements: list[JsonValue] = []
                    if self.peek() != "]":
                        open_.append((elements, None))
                        continue
                    value = elements
                self.pos += 1
            else:
                value = self.scalar(char)
            # The value is complete: put it into what holds it, and close what it was the last of.
            while open_:
                holder, key = open_[-1]
                if isinstance(holder, list):
                    holder.append(value)
                    end = "]"
                else:
                    assert key is not None  # an object's frame always carries the key being read
                    holder[key] = value
                    end = "}"
                self.space()
                char = self.peek()
                if char == ",":
                    self.pos += 1
                    if isinstance(holder, dict):
                        self.space()
                        open_[-1] = (holder, self.key(holder))
                    break
                if char != end:
                    raise self.fail(f"expected a comma or {end}")
                self.pos += 1
                open_.pop()
                value = holder
            else:
                self.space()
                if self.pos < len(self.text):
                    raise self.fail("there is more after the end of the document")
                return value

    def key(self, members: JsonObject) -> str:
        if self.peek() != '"':
            raise self.fail("an object key must be a string")
        start = self.pos
        key = self.string()
        if key in members:
            raise self.fail("the object names this key twice", start, "duplicate_key")
        self.space()
        if self.peek() != ":":
            raise self.fail("an object key must be followed by a colon")
        self.pos += 1
        return key

    def scalar(self, char: str) -> JsonValue:
        if char == '"':
            return self.string()
        if char in _WORDS:
            word, value = _WORDS[char]
            if self.text.startswith(word, self.pos):
                self.pos += len(word)
                return value
        elif char == "-" or "0" <= char <= "9":
            return self.number()
        elif not char:
            raise self.fail("the document ends where a value is expected")
        raise self.fail("no JSON value starts here")

    def number(self) -> int | float:
        match = _NUMBER.match(self.text, self.pos)
        if match is None:
            raise self.fail("a number needs a digit here")
        start, self.pos = self.pos, match.end()
        if self.peek() and self.peek() in "0123456789.eE":
            raise self.fail("the number is not written as JSON demands", start)
        whole: str = match[1]
        if match[2] is None and match[3] is None:
            if len(whole) > MAX_INT_DIGITS:
                raise self.fail(f"the integer has more than {MAX_INT_DIGITS} digits", start)
            size = _int_of(whole)
            return -size if match[0][0] == "-" else size
        number = float(match[0])
        if math.isinf(number):
            raise self.fail("the number is beyond binary64", start)
        return number

    def string(self) -> str:
        self.pos += 1
        parts: list[str] = []
        while True:
            match = _PLAIN.match(self.text, self.pos)
            assert match is not None  # the pattern matches the empty text
            parts.append(match[0])
            self.pos = match.end()
            char = self.peek()
            if char == '"':
                self.pos += 1
                return "".join(parts)
            if char == "\\":
                parts.append(self.escape())
            elif char:
                raise self.fail("a control character in a string must be escaped")
            else:
                raise self.fail("the document ends inside a string")

    def escape(self) -> str:
        start = self.pos
        self.pos += 1
        char = self.peek()
        if char != "u":
            if not char or char not in _ESCAPES:
                raise self.fail('a backslash must be followed by one of " \\ / b f n r t u')
            self.pos += 1
            return _ESCAPES[char]
        unit = self.hex4()
        if 0xD800 <= unit < 0xDC00 and self.text.startswith("\\u", self.pos):
            self.pos += 1
            low = self.hex4()
            if 0xDC00 <= low < 0xE000:
                return chr(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00))
        if 0xD800 <= unit < 0xE000:
            raise self.fail("half a surrogate pair is no character", start)
        return chr(unit)

    def hex4(self) -> int:
        self.pos += 1  # the u
        match = _HEX4.match(self.text, self.pos)
        if match is None:
            raise self.fail("\\u must be followed by four hexadecimal digits")
        self.pos = match.end()
        return int(match[0], 16)


def _int_of(digits: str) -> int:
    if len(digits) <= _CHUNK:
        return int(digits)
    low = len(digits) // 2
    scale: int = 10**low
    return _int_of(digits[:-low]) * scale + _int_of(digits[-low:])


def _digits_of(number: int) -> str:
    """The digits of an integer that is not negative."""
    limit: int = 10**_CHUNK
    if number < limit:
        return str(number)
    parts: list[str] = []
    while number >= limit:
        number, low = divmod(number, limit)
        parts.append(str(low).zfill(_CHUNK))
    parts.append(str(number))
    return "".join(reversed(parts))


def canonical_bytes(value: JsonValue) -> bytes:
    """Write the canonical form.

    Keys in code point order, no white space, UTF-8 with everything raw that JSON lets stand raw.
    Raises CanonicalError for a value that JSON cannot hold.
    """
    out: list[str] = []
    # What is left to write, the next on top: texts as they are, values wrapped with their depth.
    waiting: list[str | tuple[JsonValue, int]] = [(value, 0)]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            out.append(item)
            continue
        node, depth = item
        if isinstance(node, (dict, list)):
            if depth >= MAX_DEPTH:
                raise CanonicalError(f"arrays and objects are nested more than {MAX_DEPTH} deep")
            waiting.extend(reversed(_inside(node, depth + 1)))
        else:
            out.append(_scalar(node))
    try:
        return "".join(out).encode("utf-8")
    except UnicodeEncodeError:
        raise CanonicalError("a string holds half a surrogate pair") from None


def _inside(node: list[JsonValue] | JsonObject, depth: int) -> list[str | tuple[JsonValue, int]]:
    parts: list[str | tuple[JsonValue, int]] = []
    if isinstance(node, list):
        parts.append("[")
        for i, element in enumerate(node):
            if i:
                parts.append(",")
            parts.append((element, depth))
        parts.append("]")
        return parts
    for key in node:
        if not isinstance(key, str):
            raise CanonicalError(f"an object key is a {type(key).__name__}, not a string")
    parts.append("{")
    for i, key in enumerate(sorted(node)):  # Python compares strings by code point
        parts.append(("," if i else "") + _string(key) + ":")
        parts.append((node[key], depth))
    parts.append("}")
    return parts


def _scalar(node: bool | int | float | str | None) -> str:
    if node is None:
        return "null"
    if isinstance(node, bool):
        return "true" if node else "false"
    if isinstance(node, str):
        return _string(node)
    if isinstance(node, int):
        return "-" + _digits_of(-node) if node < 0 else _digits_of(int(node))
    if isinstance(node, float):
        if not math.isfinite(node):
            raise CanonicalError("NaN and infinities are no JSON numbers")
        return float.__repr__(node)  # shortest digits that read back, always a point or exponent
    raise CanonicalError(f"a {type(node).__name__} is no JSON value")


_MUST_ESCAPE = re.compile(r'["\\\x00-\x1f]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _string(text: str) -> str:
    def escaped(match: re.Match[str]) -> str:
        return _SHORT.get(match[0]) or f"\\u{ord(match[0]):04x}"

    return '"' + _MUST_ESCAPE.sub(escaped, text) + '"'


def digest_bytes(data: bytes) -> str:
    """The digest of a document that is in canonical form already."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def digest(value: JsonValue) -> str:
    """``sha256:`` and the hex SHA-256 of the canonical form."""
    return digest_bytes(canonical_bytes(value))
