"""Writes linear.json: what scikit-learn's linear models predict for fixed data.

usage: python linear.py (scikit-learn 1.9)
"""
import json
import pathlib

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

rng = np.random.default_rng(11)
x = (rng.normal(size=(120, 4)) * [1, 10, 0.5, 30] + [0, 5, 1, 50]).astype(np.float32).astype(float)
z = (x - x.mean(0)) / x.std(0)
number = z @ [3, -2, 0.5, 1] + rng.normal(size=120)
three = np.digitize(number, [-2, 2])
two = (three == 2).astype(int)
train, test = x[:80], x[80:]


def logistic(y, **kw):
    return LogisticRegression(tol=1e-10, max_iter=100000, **kw).fit(train, y[:80])


cases = [
    dict(kind="ridge", hyper=dict(alpha=a), classes=0, y=number[:80].tolist(),
         want=[[float(v)] for v in Ridge(alpha=a).fit(train, number[:80]).predict(test)])
    for a in (0.5, 50)
] + [
    dict(kind="logistic", hyper={"C": c, "class_weight": w or "none", "tol": 1e-10}, classes=int(y.max()) + 1, y=y[:80].tolist(),
         want=logistic(y, C=c, class_weight=w).predict_proba(test).tolist())
    for y in (two, three) for c, w in ((1, None), (0.05, "balanced"))
]
out = dict(x=train.ravel().tolist(), test=test.ravel().tolist(), features=4, cases=cases)
pathlib.Path(__file__).with_name("linear.json").write_text(json.dumps(out, indent=None, separators=(",", ":")) + "\n")
