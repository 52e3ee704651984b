"""Writes vectors.json: what SciPy and NumPy say about the samples that drift_test.go reads.

python3 -m venv v && v/bin/pip install scipy==1.17.1 && v/bin/python vectors.py > vectors.json
"""
import json

import numpy as np
from scipy import stats

rng = np.random.default_rng(20260101)


def psi_term(p, q):
    p, q = np.maximum(p, 1e-4), np.maximum(q, 1e-4)
    return float(np.sum((p - q) * np.log(p / q)))


def numbers(name, live, base):
    live, base = np.round(live, 6), np.round(base, 6)
    edges = np.unique(np.quantile(base, np.arange(1, 10) / 10))
    bins = lambda v: np.bincount(np.searchsorted(edges, v, side="right"), minlength=len(edges) + 1) / len(v)
    sigma = base.std()
    spread = abs(live.mean() - base.mean()) / sigma
    ks = stats.ks_2samp(live, base, method="exact")
    return {
        "name": name, "live": live.tolist(), "base": base.tolist(),
        "live_mean": live.mean(), "live_std": live.std(), "base_mean": base.mean(), "base_std": sigma,
        "z": spread, "z_se": spread / np.sqrt(1 / len(live) + 1 / len(base)),
        "psi": psi_term(bins(live), bins(base)),
        "ks": ks.statistic, "ks_p": ks.pvalue, "w1": stats.wasserstein_distance(live, base) / sigma,
    }


def labels(name, live, base):
    classes = sorted(set(live) | set(base))
    p = np.array([live.count(c) / len(live) for c in classes])
    q = np.array([base.count(c) / len(base) for c in classes])
    kept = np.clip(q, 1 / len(base), 1 - 1 / len(base))
    z = float(np.max(np.abs(p - q) / np.sqrt(kept * (1 - kept))))
    return {
        "name": name, "live_labels": live, "base_labels": base, "z": z,
        "z_se": z / np.sqrt(1 / len(live) + 1 / len(base)), "psi": psi_term(p, q),
    }


def draw(weights, n):
    return [str(c) for c in rng.choice(list(weights), size=n, p=list(weights.values()))]


out = [
    numbers("same distribution", rng.normal(200, 40, 100), rng.normal(200, 40, 500)),
    numbers("small shift", rng.normal(225, 40, 100), rng.normal(200, 40, 500)),
    numbers("large shift", rng.normal(420, 40, 100), rng.normal(200, 40, 500)),
    numbers("wider", rng.normal(200, 160, 100), rng.normal(200, 40, 500)),
    numbers("skewed", rng.lognormal(3, 1, 60), rng.lognormal(3.4, 0.8, 220)),
    numbers("ties", rng.integers(0, 5, 40).astype(float), rng.integers(0, 7, 90).astype(float)),
    numbers("smallest", rng.normal(0, 1, 10), rng.normal(0.5, 1, 10)),
    numbers("unequal sizes", rng.normal(0, 1, 333), rng.normal(0.1, 1, 17)),
    numbers("mostly one value", np.r_[np.full(90, 7.0), rng.normal(7, 1, 10)], np.r_[np.full(450, 7.0), rng.normal(7, 2, 50)]),
    numbers("large magnitudes", rng.normal(3e12, 1e9, 50), rng.normal(3e12, 1e9, 200)),
    labels("labels alike", draw({"short": 0.5, "long": 0.5}, 100), draw({"short": 0.5, "long": 0.5}, 500)),
    labels("labels moved", draw({"short": 0.9, "long": 0.1}, 100), draw({"short": 0.4, "long": 0.6}, 500)),
    labels("new class", draw({"a": 0.5, "b": 0.2, "new": 0.3}, 80), draw({"a": 0.7, "b": 0.3}, 300)),
    labels("one class", ["1"] * 50, ["1"] * 400),
]
print(json.dumps(out))
