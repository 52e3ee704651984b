"""The formulas of the gate family once more, from their description and with the
standard library only: random.Random is MT19937, math.fsum rounds once.

Reads {matrix, current, bootstrap} per line, writes the figures per line.
"""
import fractions
import functools
import hashlib
import itertools
import json
import math
import random
import sys


def fmean(xs):
    return math.fsum(xs) / len(xs)


def phi(x, y):
    n, a, b = len(x), sum(x), sum(y)
    if a in (0, n) or b in (0, n):
        return None
    if n * sum(p * q for p, q in zip(x, y)) == a * b:
        return 0.0
    mx, my = a / n, b / n
    cov = math.fsum((p - mx) * (q - my) for p, q in zip(x, y))
    vx, vy = math.fsum((p - mx) ** 2 for p in x), math.fsum((q - my) ** 2 for q in y)
    return cov / math.sqrt(vx * vy)


def exact(q):
    for d in range(1, 1001):
        f = fractions.Fraction(round(q * d), d)
        if abs(fractions.Fraction(q) - f) <= fractions.Fraction(1, 10**12):
            return f
    return fractions.Fraction(repr(q))


@functools.cache
def combinations_of(m):
    return [float(math.comb(m, k)) for k in range(m + 1)]


def tail(m, p, ks):
    c = combinations_of(m)
    return math.fsum(c[k] * p**k * (1 - p) ** (m - k) for k in ks)


def panel_error(m, a, g, q):
    t = math.floor(q * m)
    rejects = tail(m, a, range(t + 1))
    if q == fractions.Fraction(1, 2):
        return rejects
    return g * rejects + (1 - g) * tail(m, 1 - a, range(t + 1, m + 1))


SIZES = range(1, 200, 2)


@functools.cache
def curve_of(a, g, q):
    return [panel_error(m, a, g, q) for m in SIZES]


def votes(a, g, q, err, as_bad_as_one):
    if a <= 0.5:
        return None
    curve = curve_of(a, g, q)
    if as_bad_as_one:
        return 1.0
    falls = all(y <= x * (1 + 1e-12) for x, y in itertools.pairwise(curve))
    if err <= curve[-1] and q == fractions.Fraction(1, 2):
        return 199.0
    for m, high, low in zip(SIZES, curve, curve[1:]):
        if low <= err <= high:
            return float(m) if high == low else m + 2 * (high - err) / (high - low)
    if err <= curve[-1]:
        return 199.0 if falls else None
    raise AssertionError("the curve passes every error between its ends")


def decide(columns, q):
    return [sum(votes) > q * len(columns) for votes in zip(*columns)]


def measure(errors, wrong, good, q):
    n = len(wrong)
    a = fmean([1 - sum(e) / n for e in errors])
    phis = [phi(x, y) for x, y in itertools.combinations(errors, 2)]
    defined = [p for p in phis if p is not None]
    err = sum(wrong) / n
    # One verifier errs as its accuracy says, whatever the quorum: held against each other in integers.
    as_bad_as_one = sum(wrong) * len(errors) >= sum(map(sum, errors))
    return {"error": err, "a": a, "rho": fmean(defined) if defined else None, "skipped": len(phis) - len(defined), "votes": votes(a, sum(good) / n, q, err, as_bad_as_one)}


def draws(seed, n, replicates):
    source = random.Random(abs(seed))
    bits = n.bit_length()
    for _ in range(replicates):
        rows = []
        while len(rows) < n:
            index = source.getrandbits(bits)
            if index < n:
                rows.append(index)
        yield rows


def interval(point, values, b):
    values = sorted(v for v in values if v is not None)
    out = {"point": point, "used": len(values), "low": None, "high": None}
    p = (1 - b["confidence_level"]) / 2
    for name, at in (("low", p), ("high", 1 - p)):
        if values:
            i, part = divmod(at * (len(values) - 1), 1)
            i = int(i)
            out[name] = values[i] if part == 0 else values[i] + part * (values[i + 1] - values[i])
    return out


def pick(columns, rows):
    return [[c[r] for r in rows] for c in columns]


def opinion(doc, current, b):
    q = exact(doc["quorum"])
    candidates = doc["candidates"]
    truth = [c["ground_truth"] == "accept" for c in candidates]
    rows = [i for i, c in enumerate(candidates) if not c.get("probe")]
    probes = [i for i, c in enumerate(candidates) if c.get("probe")]
    accepts = {v["id"]: [v["verdicts"][c["id"]] == "accept" for c in candidates] for v in doc["verifiers"]}
    ids = list(accepts)
    errors = {v: [int(accepts[v][i] != truth[i]) for i in rows] for v in ids}

    goods = [int(truth[i]) for i in rows]

    def panel(members):
        says = decide([accepts[v] for v in members], q)
        return says, [int(says[i] != truth[i]) for i in rows]

    says, wrong = panel(ids)
    whole = measure([errors[v] for v in ids], wrong, goods, q)
    good, bad = sum(truth[i] for i in rows), sum(not truth[i] for i in rows)
    false_accepts = sum(says[i] and not truth[i] for i in rows)
    whole["false_accept"] = false_accepts / bad if bad else None
    whole["false_reject"] = (sum(wrong) - false_accepts) / good if good else None
    rho, a = whole["rho"], whole["a"]
    whole["heuristic"] = len(ids) / (1 + (len(ids) - 1) * rho) if rho is not None and rho > 0 else None
    whole["ceiling"] = None if rho is None or a <= 0.5 else "unbounded" if rho <= 0 else votes(a, 0, fractions.Fraction(1, 2), rho * (1 - a), rho >= 1)
    whole["breached"] = sum(says[i] for i in probes)
    out = {"digest": hashlib.sha256(json.dumps(doc, sort_keys=True, separators=(",", ":")).encode()).hexdigest(), "panel": whole}

    n = len(rows)
    samples = []
    if n >= 5:
        columns = [errors[v] for v in ids]
        samples = [measure(pick(columns, r), *pick([wrong, goods], r), q) for r in draws(b["seed"], n, b["replicates"])]
        out["intervals"] = {k: interval(whole[k], [s[k] for s in samples], b) for k in ("error", "a", "rho", "votes")}

    out["candidates"] = []
    says_now, wrong_now = panel(current)
    now = measure([errors[v] for v in current], wrong_now, goods, q)
    for v in ids:
        if v in current:
            continue
        says_then, wrong_then = panel(current + [v])
        then = measure([errors[w] for w in current + [v]], wrong_then, goods, q)
        told = lambda x: x is not None and x < 199
        difference = lambda x, y: y["votes"] - x["votes"] if told(x["votes"]) and told(y["votes"]) else None
        phis = [p for p in (phi(errors[v], errors[w]) for w in current) if p is not None]
        c = {
            "id": v, "accuracy": 1 - sum(errors[v]) / n, "error_delta": now["error"] - then["error"], "votes_delta": difference(now, then),
            "correlation": fmean(phis) if phis else None,
            "changed": sum(x != y for x, y in zip(wrong_now, wrong_then)),
            "rescued": sum(x and not e for x, e in zip(wrong_now, errors[v])),
            "spoiled": sum(e and not x for x, e in zip(wrong_now, errors[v])),
            "prevented": sum(says_now[i] and not says_then[i] for i in probes),
            "breached": sum(says_then[i] for i in probes),
        }
        if n >= 5:
            deltas, more = [], []
            for r in draws(b["seed"], n, b["replicates"]):
                x = measure(pick([errors[w] for w in current], r), *pick([wrong_now, goods], r), q)
                y = measure(pick([errors[w] for w in current + [v]], r), *pick([wrong_then, goods], r), q)
                deltas.append(x["error"] - y["error"])
                more.append(difference(x, y))
            c["intervals"] = {"error_delta": interval(c["error_delta"], deltas, b), "votes_delta": interval(c["votes_delta"], more, b)}
        out["candidates"].append(c)
    return out


for line in sys.stdin:
    case = json.loads(line)
    print(json.dumps(opinion(case["matrix"], case["current"], case["bootstrap"])), flush=True)
