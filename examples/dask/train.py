"""Gradient-boosted trees of XGBoost, fitted over the workers of a Dask cluster.

An estimator of kind ``command``; README.md beside it says how to run it.
"""

from __future__ import annotations

import argparse
import glob
import os
import tempfile
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import mlp_train
import numpy as np
import pandas as pd
import xgboost
from distributed import Client
from mlp_train import boosted
from xgboost import dask as dxgb

TARGET = "mlp_target"


def read_part(path: str, features: Any, categories: list[str], target: str, log: bool) -> Any:
    """Reads one file on a worker and makes the features that the model sees of it."""
    rows = pd.read_csv(path, dtype=dict.fromkeys(categories, str), keep_default_na=False)
    values = rows.pop(target).to_numpy(np.float32)
    made = pd.DataFrame(np.asarray(features.transform(rows), np.float32))
    made.columns = [f"f{i}" for i in range(made.shape[1])]
    made[TARGET] = np.log1p(values) if log else values
    return made


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--scheduler", required=True, help="such as tcp://127.0.0.1:8786")
    arguments.add_argument(
        "--parts", help="CSV files that every worker can read; default: the trainer's rows"
    )
    options = arguments.parse_args()
    task = mlp_train.load()
    if task.labels:
        raise SystemExit("this example fits regressions; for labels give XGBoost another objective")

    boosted.check_settings(boosted.xgboost(regression=True), task.hyperparameters)
    # The transforms are fitted on the trainer's rows, which fit into memory, and applied where
    # the parts are read.
    pipeline = task.pipeline(boosted.xgboost(regression=True)())
    features = pipeline.named_steps["features"].fit(task.train)
    files = (
        sorted(glob.glob(options.parts))
        if options.parts
        else [str(Path(os.environ["TRAIN_DIR"]) / "train.csv")]
    )
    if not files:
        raise SystemExit(f"no file matches {options.parts}")
    target = task.spec["target"]
    categories = [f["column"] for f in task.spec["features"] if f["kind"] == "category"]
    log = target["transform"] == "log1p"
    columns = [f"f{i}" for i in range(features.transform(task.train[:1]).shape[1])]
    with Client(options.scheduler, timeout=60) as client:
        parts = dd.from_map(
            read_part,
            files,
            features=features,
            categories=categories,
            target=target["column"],
            log=log,
            meta=dict.fromkeys([*columns, TARGET], np.float32),
        ).persist()
        settings = {"seed": task.spec["seed"], "nthread": 1, **task.hyperparameters}
        rounds = settings.pop("n_estimators", 100)
        matrix = dxgb.DaskDMatrix(client, parts[columns], parts[TARGET])
        booster = dxgb.train(client, settings, matrix, num_boost_round=rounds)["booster"]
        holders = {worker for workers in client.who_has().values() for worker in workers}
        print(
            f"fitted {len(parts)} rows of {len(files)} files on {len(holders)} workers", flush=True
        )

    # The graph is the transforms and the trees, as of a model that one process has fitted.
    with tempfile.TemporaryDirectory() as scratch:
        trees = Path(scratch) / "trees.json"
        booster.save_model(trees)
        model = xgboost.XGBRegressor()
        model.load_model(trees)
    pipeline.steps[-1] = ("model", model)
    task.save(pipeline)


if __name__ == "__main__":
    main()
