// Strict JSON and its canonical form C1, exact where JSON.parse is not: numbers keep what they are, keys sort by code
// point, and a text that two readers could take for two documents is refused.

const MAX_DEPTH = 512;
const MAX_INT_DIGITS = 4300;

class JSONError extends Error {
  constructor(reason, offset, sentence) {
    super(`${sentence} (at character ${offset})`);
    this.reason = reason;
    this.offset = offset;
  }
}

// Num is a number as C1 writes it: an integer of any size, or a binary64 that stays a float.
class Num {
  constructor(text) { this.text = text; }
  toString() { return this.text; }
  valueOf() { return Number(this.text); }
}

// floatText writes the shortest digits that read back to x, always with a point or an exponent.
function floatText(x) {
  const sign = x < 0 || Object.is(x, -0) ? "-" : "";
  const [mantissa, power] = Math.abs(x).toExponential().split("e");
  const digits = mantissa.replace(".", "");
  const e = Number(power);
  if (e < -4 || e >= 16) {
    return `${sign}${mantissa}e${e < 0 ? "-" : "+"}${String(Math.abs(e)).padStart(2, "0")}`;
  }
  if (e < 0) return `${sign}0.${"0".repeat(-e - 1)}${digits}`;
  const whole = digits.slice(0, e + 1).padEnd(e + 1, "0");
  return `${sign}${whole}.${digits.slice(e + 1) || "0"}`;
}

function isHigh(c) { return c >= 0xd800 && c <= 0xdbff; }
function isLow(c) { return c >= 0xdc00 && c <= 0xdfff; }

function wellFormed(s) {
  for (let i = 0; i < s.length; i++) {
    const c = s.charCodeAt(i);
    if (isLow(c)) return false;
    if (isHigh(c) && !isLow(s.charCodeAt(++i))) return false;
  }
  return true;
}

class Parser {
  constructor(text) {
    this.text = text;
    this.at = text.charCodeAt(0) === 0xfeff ? 1 : 0;
  }

  fail(reason, sentence) { throw new JSONError(reason, this.at, sentence); }
  bad(sentence) { this.fail("invalid_json", sentence); }

  match(sticky) {
    sticky.lastIndex = this.at;
    const found = sticky.exec(this.text);
    if (!found) return "";
    this.at += found[0].length;
    return found[0];
  }

  space() { this.match(/[ \t\n\r]*/y); }

  document() {
    this.space();
    const v = this.value(0);
    this.space();
    if (this.at < this.text.length) this.bad("there is more after the end of the document");
    return v;
  }

  value(depth) {
    const c = this.text[this.at];
    switch (c) {
      case "{": return this.object(depth + 1);
      case "[": return this.array(depth + 1);
      case '"': return this.string();
      case "t": return this.word("true", true);
      case "f": return this.word("false", false);
      case "n": return this.word("null", null);
    }
    if (c === undefined) this.bad("the document ends where a value is expected");
    return this.number();
  }

  word(word, v) {
    if (!this.text.startsWith(word, this.at)) this.bad("no JSON value starts here");
    this.at += word.length;
    return v;
  }

  number() {
    const start = this.at;
    const text = this.match(/-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y);
    if (!text) this.bad("no JSON value starts here");
    if (/[.eE]/.test(text)) {
      const x = Number(text);
      if (!Number.isFinite(x)) { this.at = start; this.bad("the number is beyond what binary64 holds"); }
      return new Num(floatText(x));
    }
    if (text.length - (text[0] === "-" ? 1 : 0) > MAX_INT_DIGITS) {
      this.at = start;
      this.bad(`the integer has more than ${MAX_INT_DIGITS} digits`);
    }
    return new Num(text === "-0" ? "0" : text);
  }

  string() {
    const start = this.at++;
    let out = "";
    for (;;) {
      out += this.match(/[^"\\\u0000-\u001f]*/y);
      const c = this.text[this.at];
      if (c === '"') break;
      if (c !== "\\") this.bad(c === undefined ? "the string has no end" : "a control character stands in a string");
      out += this.escape();
    }
    this.at++;
    if (!wellFormed(out)) { this.at = start; this.bad("the string holds half a surrogate pair"); }
    return out;
  }

  escape() {
    const code = this.match(/\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y);
    if (!code) this.bad("this escape does not exist");
    const c = code[1];
    if (c === "u") return String.fromCharCode(parseInt(code.slice(2), 16));
    const i = "bfnrt".indexOf(c);
    return i < 0 ? c : "\b\f\n\r\t"[i];
  }

  enter(depth) {
    if (depth > MAX_DEPTH) this.fail("too_deep", `arrays and objects are nested more than ${MAX_DEPTH} deep`);
    this.at++;
    this.space();
  }

  // more is called after an element and tells whether another follows.
  more(close) {
    this.space();
    const c = this.text[this.at];
    if (c !== "," && c !== close) this.bad(`a comma or ${close} is missing`);
    this.at++;
    this.space();
    return c === ",";
  }

  array(depth) {
    const out = [];
    this.enter(depth);
    if (this.text[this.at] === "]") { this.at++; return out; }
    do out.push(this.value(depth)); while (this.more("]"));
    return out;
  }

  object(depth) {
    const out = Object.create(null); // so that "__proto__" is a key like any other
    this.enter(depth);
    if (this.text[this.at] === "}") { this.at++; return out; }
    do {
      const start = this.at;
      if (this.text[this.at] !== '"') this.bad("a key must be a string");
      const key = this.string();
      if (key in out) { this.at = start; this.fail("duplicate_key", "the object has this key twice"); }
      this.space();
      if (this.text[this.at] !== ":") this.bad("a colon is missing");
      this.at++;
      this.space();
      out[key] = this.value(depth);
    } while (this.more("}"));
    return out;
  }
}

// parseJSON reads one document. Objects have no prototype, numbers are Num.
function parseJSON(text) { return new Parser(text).document(); }

// byCodePoint orders strings by code point: a surrogate stands for more than any single unit.
function byCodePoint(a, b) {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const x = a.charCodeAt(i), y = b.charCodeAt(i);
    if (x === y) continue;
    const high = (x >= 0xd800 && x <= 0xdfff) - (y >= 0xd800 && y <= 0xdfff);
    return high || x - y;
  }
  return a.length - b.length;
}

const ESCAPES = { '"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function quote(s) {
  return '"' + s.replace(/["\\\u0000-\u001f]/g, (c) => ESCAPES[c] || "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0")) + '"';
}

// canonical writes C1. With an indent it writes the same for people.
function canonical(v, indent, depth) {
  if (v === null || typeof v === "boolean" || v instanceof Num) return String(v);
  if (typeof v === "string") return quote(v);
  if (typeof v === "number") return Number.isInteger(v) ? String(v) : floatText(v);
  const list = Array.isArray(v);
  const level = depth || 0;
  const parts = list
    ? v.map((e) => canonical(e, indent, level + 1))
    : Object.keys(v).sort(byCodePoint).map((k) => quote(k) + (indent ? ": " : ":") + canonical(v[k], indent, level + 1));
  const [open, close] = list ? "[]" : "{}";
  if (!indent || parts.length === 0) return open + parts.join(",") + close;
  const pad = "\n" + indent.repeat(level + 1);
  return open + pad + parts.join("," + pad) + "\n" + indent.repeat(level) + close;
}
