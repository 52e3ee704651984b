"""Writes models of XGBoost and LightGBM as ONNX into a folder, each with 400 rows of which some values are missing.

usage: boosted_onnx.py FOLDER
"""
import json
import pathlib
import sys

import lightgbm
import numpy as np
import onnx
import xgboost
from onnxmltools import convert_lightgbm, convert_xgboost
from onnxmltools.convert.common.data_types import FloatTensorType
from sklearn.datasets import load_wine

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True)
wine = load_wine(as_frame=True)
rng = np.random.default_rng(7)
x = wine.data.to_numpy(np.float32)[rng.integers(0, len(wine.data), 400)]
x[rng.random(x.shape) < 0.05] = np.nan
X, classes = wine.data.to_numpy(np.float32, copy=True), wine.target.to_numpy()
X[rng.random(X.shape) < 0.05] = np.nan  # so that the trees learn where missing values go
for name, model, target, convert in (
    ("xgboost-regressor", xgboost.XGBRegressor(n_estimators=10, max_depth=3), classes * 2.5, convert_xgboost),
    ("xgboost-two", xgboost.XGBClassifier(n_estimators=10, max_depth=3), (classes > 0).astype(int), convert_xgboost),
    ("xgboost-three", xgboost.XGBClassifier(n_estimators=10, max_depth=3), classes, convert_xgboost),
    ("lightgbm-regressor", lightgbm.LGBMRegressor(n_estimators=10, verbose=-1), classes * 2.5, convert_lightgbm),
    ("lightgbm-two", lightgbm.LGBMClassifier(n_estimators=10, verbose=-1), (classes > 0).astype(int), convert_lightgbm),
    ("lightgbm-strings", lightgbm.LGBMClassifier(n_estimators=10, verbose=-1), np.array(["barolo", "grignolino", "barbera"])[classes], convert_lightgbm),
):
    model.fit(X, target)
    onnx.save(convert(model, initial_types=[("X", FloatTensorType([None, X.shape[1]]))], target_opset=15), folder / f"{name}.onnx")
    np.savez(folder / f"{name}.npz", x=x, y=target)
    (folder / f"{name}.json").write_text(json.dumps(list(wine.data.columns)))
