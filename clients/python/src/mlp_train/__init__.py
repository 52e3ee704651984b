"""Fits models for the trainer's estimators of kind ``command``.

The trainer gives the rows in the folder ``TRAIN_DIR`` and takes ``model.onnx`` from ``OUT_DIR``.
A script of your own needs three lines::

    task = mlp_train.load()
    pipeline = task.pipeline(MyEstimator(**task.hyperparameters))
    task.save(pipeline.fit(task.train, task.target))

``python -m mlp_train`` does that with an estimator of scikit-learn that the hyperparameter
``estimator`` names.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

OPSET = {"": 17, "ai.onnx.ml": 3}


@dataclass(frozen=True)
class Task:
    """What is to be fitted: ``spec.json`` and the rows."""

    spec: dict[str, Any]
    train: Any
    target: Any
    validation: Any | None
    validation_target: Any | None
    out: Path

    @property
    def hyperparameters(self) -> dict[str, Any]:
        return dict(self.spec["hyperparameters"])

    @property
    def labels(self) -> list[str]:
        return list(self.spec["target"].get("labels") or [])

    def pipeline(self, estimator: Any) -> Any:
        """The declared transforms of the features, then the estimator."""
        from sklearn.compose import ColumnTransformer
        from sklearn.pipeline import Pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        steps: list[tuple[str, Any, list[str]]] = []
        for f in self.spec["features"]:
            columns = columns_of(f)
            if f["transform"] == "onehot":
                step: Any = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
            elif f["transform"] == "standardize":
                step = StandardScaler()
            elif f["transform"] == "none":
                step = "passthrough"
            else:
                raise ValueError(
                    f"transform {f['transform']} of {f['column']} is not made here; "
                    "use none, standardize or onehot"
                )
            steps.append((f["column"], step, columns))
        return Pipeline([("features", ColumnTransformer(steps)), ("model", estimator)])

    def save(self, fitted: Any) -> None:
        """Writes the fitted pipeline with the inputs and outputs that the platform serves."""
        import onnx
        from skl2onnx import to_onnx
        from skl2onnx.common.data_types import FloatTensorType, StringTensorType

        inputs = []
        for f in self.spec["features"]:
            for column in columns_of(f):
                kind = StringTensorType if f["kind"] == "category" else FloatTensorType
                inputs.append((column, kind([None, 1])))
        options = {id(fitted): {"zipmap": False}} if self.labels else None
        model = to_onnx(fitted, initial_types=inputs, target_opset=OPSET, options=options)
        rename_outputs(model, self.labels, self.spec["target"]["transform"])
        onnx.checker.check_model(model)
        (self.out / "model.onnx").write_bytes(model.SerializeToString())


def columns_of(feature: dict[str, Any]) -> list[str]:
    if feature["kind"] == "vector":
        raise ValueError(
            f"{feature['column']} is a vector, for which there is no transform here yet"
        )
    return [feature["column"]]


def rename_outputs(model: Any, labels: list[str], transform: str) -> None:
    """Gives the outputs the platform's names, and the label its text instead of its index."""
    from onnx import TensorProto, helper

    graph = model.graph
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [
                f"sk_{n}" if n in ("label", "probabilities", "prediction") else n for n in names
            ]
    for output in graph.output:
        if output.name in ("label", "probabilities", "prediction"):
            output.name = f"sk_{output.name}"
    old = [o.name for o in graph.output]
    while graph.output:
        graph.output.pop()
    if not labels:
        last = old[0]
        if transform == "log1p":
            one = helper.make_tensor("mlp_one", TensorProto.FLOAT, [1], [1.0])
            graph.initializer.append(one)
            graph.node.append(helper.make_node("Exp", [last], ["mlp_exp"]))
            graph.node.append(helper.make_node("Sub", ["mlp_exp", "mlp_one"], ["prediction"]))
        else:
            graph.node.append(helper.make_node("Identity", [last], ["prediction"]))
        graph.output.append(
            helper.make_tensor_value_info("prediction", TensorProto.FLOAT, [None, 1])
        )
        return
    whole = all(label.lstrip("-").isdigit() and str(int(label)) == label for label in labels)
    kind = TensorProto.INT64 if whole else TensorProto.STRING
    values = [int(v) for v in labels] if whole else [v.encode() for v in labels]
    graph.initializer.append(helper.make_tensor("mlp_labels", kind, [len(labels)], values))
    graph.node.append(helper.make_node("Gather", ["mlp_labels", old[0]], ["label"]))
    graph.node.append(helper.make_node("Identity", [old[1]], ["probabilities"]))
    graph.output.append(helper.make_tensor_value_info("label", kind, [None]))
    shape = [None, len(labels)]
    graph.output.append(helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, shape))


def load() -> Task:
    """Reads the task that the trainer prepared."""
    folder = Path(os.environ["TRAIN_DIR"])
    spec: dict[str, Any] = json.loads((folder / "spec.json").read_text())
    categories = {f["column"]: str for f in spec["features"] if f["kind"] == "category"}

    def read(name: str) -> tuple[Any, Any]:
        rows = pd.read_csv(folder / name, dtype=categories, keep_default_na=False)
        target = rows.pop(spec["target"]["column"]).to_numpy()
        for column in rows.columns:
            if column not in categories:
                rows[column] = rows[column].astype(np.float32)
        if spec["type"] == "regression" and spec["target"]["transform"] == "log1p":
            target = np.log1p(target)
        return rows, target

    train, target = read("train.csv")
    validation, validation_target = None, None
    if not spec["refit"]:
        validation, validation_target = read("validation.csv")
    out = Path(os.environ["OUT_DIR"])
    return Task(spec, train, target, validation, validation_target, out)
