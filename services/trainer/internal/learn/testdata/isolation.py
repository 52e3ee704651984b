"""Writes isolation.json: rows with 5 % anomalies and scikit-learn's scores of them."""
import json
import numpy as np
from sklearn.ensemble import IsolationForest

rng = np.random.default_rng(7)
common = np.concatenate([rng.normal(0, 1, (285, 4)), rng.normal(4, 0.5, (285, 4))])
odd = rng.uniform(-8, 12, (30, 4))
x = np.concatenate([common, odd]).astype(np.float32).round(3)
label = [0] * len(common) + [1] * len(odd)
scores = np.stack([-IsolationForest(n_estimators=100, max_samples=256, random_state=s).fit(x).score_samples(x) for s in range(20)])
with open(__file__.replace(".py", ".json"), "w") as f:
    json.dump({"Rows": [[float(v) for v in r] for r in x.astype(float).round(3)], "Label": label,
               "Score": scores.mean(0).round(6).tolist(), "Spread": scores.std(0).round(6).tolist()}, f)
