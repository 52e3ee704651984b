"""``python -m mlp_train``: an estimator that the hyperparameter ``estimator`` names."""

from __future__ import annotations

from typing import Any

import mlp_train
from mlp_train import boosted


def make(name: str, regression: bool, settings: dict[str, Any]) -> Any:
    from sklearn import ensemble, linear_model, neural_network

    known: dict[str, tuple[Any, Any]] = {
        "gradient_boosting": (
            ensemble.GradientBoostingRegressor,
            ensemble.GradientBoostingClassifier,
        ),
        "extra_trees": (ensemble.ExtraTreesRegressor, ensemble.ExtraTreesClassifier),
        "random_forest": (ensemble.RandomForestRegressor, ensemble.RandomForestClassifier),
        "mlp": (neural_network.MLPRegressor, neural_network.MLPClassifier),
        "linear": (linear_model.LinearRegression, linear_model.LogisticRegression),
    }
    libraries = {"xgboost": boosted.xgboost, "lightgbm": boosted.lightgbm}
    if name in libraries:
        return boosted.make(libraries[name](regression), settings)
    if name not in known:
        names = ", ".join([*known, *libraries])
        raise SystemExit(f"hyperparameter estimator is {name!r}; known are {names}")
    return known[name][0 if regression else 1](**settings)


def main() -> None:
    task = mlp_train.load()
    settings = task.hyperparameters
    name = str(settings.pop("estimator", "gradient_boosting"))
    if name != "linear":
        settings.setdefault("random_state", task.spec["seed"])
    pipeline = task.pipeline(make(name, task.spec["type"] == "regression", settings))
    print(f"fitting {name} on {len(task.train)} rows", flush=True)
    pipeline.fit(task.train, task.target)
    if task.validation is not None:
        print(f"validation: {pipeline.score(task.validation, task.validation_target):.4f}")
    task.save(pipeline)


if __name__ == "__main__":
    main()
