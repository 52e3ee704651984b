"""Fit scikit-learn's HistGradientBoosting once for each line of stdin.

The argument is a folder with x.f32, y.f64 (to fit) and xt.f32, yt.f64 (to judge), in row-major order.
Each answer is one line: seconds of wall clock, seconds of processor time, RMSE on the rows to judge.
"""

import sys
import time
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

folder = Path(sys.argv[1])
columns, trees = int(sys.argv[2]), int(sys.argv[3])


def read(name: str, kind: type) -> np.ndarray:
    return np.fromfile(folder / name, dtype=kind)


# In the form that scikit-learn wants, so that no conversion is timed.
x = read("x.f32", np.float32).reshape(-1, columns).astype(np.float64)
xt = read("xt.f32", np.float32).reshape(-1, columns).astype(np.float64)
y, yt = read("y.f64", np.float64), read("yt.f64", np.float64)

for _ in sys.stdin:
    model = HistGradientBoostingRegressor(
        max_iter=trees, learning_rate=0.1, max_leaf_nodes=31, min_samples_leaf=20, early_stopping=False, random_state=1
    )
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(x, y)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(wall, cpu, np.sqrt(np.mean((model.predict(xt) - yt) ** 2)), flush=True)
