"""Trains a scikit-learn forest, logs it as a pickle with the official client, and makes it Staging. Production is the gate's.

Prints one JSON document: the version, and rows with the predictions that scikit-learn gives in Python.
usage: TRACKING_URI=... sklearn_pickle.py NAME
"""
import json
import os
import sys

import mlflow
import mlflow.sklearn
import numpy as np
import pandas as pd
from mlflow.models import infer_signature
from mlflow.tracking import MlflowClient
from sklearn.ensemble import RandomForestRegressor

name = sys.argv[1]
mlflow.set_tracking_uri(os.environ["TRACKING_URI"])
mlflow.set_experiment("pickles")

rng = np.random.default_rng(11)
frame = pd.DataFrame(rng.uniform(0, 100, size=(300, 3)), columns=["x0", "x1", "x2"])
y = 2 * frame["x0"] - frame["x1"] / (1 + frame["x2"])
forest = RandomForestRegressor(n_estimators=20, random_state=1).fit(frame, y)
with mlflow.start_run():
    info = mlflow.sklearn.log_model(forest, name="model", serialization_format="cloudpickle", signature=infer_signature(frame, forest.predict(frame)))
version = mlflow.register_model(info.model_uri, name).version
MlflowClient().set_registered_model_alias(name, "Staging", version)
rows = frame[:20]
print(json.dumps({
    "version": str(version),
    "rows": rows.to_dict("records"),
    "predictions": [float(v) for v in forest.predict(rows)],
}))
