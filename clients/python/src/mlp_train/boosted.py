"""Gradient-boosted trees of XGBoost and LightGBM, with their converters for skl2onnx."""

from __future__ import annotations

from typing import Any


def xgboost(regression: bool) -> Any:
    """The estimator class of XGBoost, known to skl2onnx."""
    from onnxmltools.convert.xgboost.operator_converters.XGBoost import convert_xgboost
    from xgboost import XGBClassifier, XGBRegressor

    if regression:
        return _register(XGBRegressor, "XGBoostXGBRegressor", convert_xgboost, True, None)
    return _register(XGBClassifier, "XGBoostXGBClassifier", convert_xgboost, False, CLASSIFIER)


def lightgbm(regression: bool) -> Any:
    """The estimator class of LightGBM, known to skl2onnx."""
    from lightgbm import LGBMClassifier, LGBMRegressor
    from onnxmltools.convert.lightgbm.operator_converters.LightGbm import convert_lightgbm

    if regression:
        options = {"split": None}
        return _register(LGBMRegressor, "LightGbmLGBMRegressor", convert_lightgbm, True, options)
    return _register(LGBMClassifier, "LightGbmLGBMClassifier", convert_lightgbm, False, CLASSIFIER)


# Parameters of the constructors with which a fit reaches beyond its rows.
OUTSIDE = {"callbacks", "xgb_model"}


def check_settings(estimator: Any, settings: dict[str, Any]) -> None:
    """Refuses hyperparameters that the estimator does not name.

    Both libraries pass what they do not know on to their cores, which take names of files
    to read and machines to connect to. A model's definition must not reach those.
    """
    known = set(estimator().get_params()) - OUTSIDE
    unknown = sorted(set(settings) - known)
    if unknown:
        raise SystemExit(
            f"{estimator.__name__} has no hyperparameter {', '.join(unknown)}; "
            f"it has {', '.join(sorted(known))}"
        )


def make(estimator: Any, settings: dict[str, Any]) -> Any:
    """An estimator with its hyperparameters."""
    check_settings(estimator, settings)
    return estimator(**settings)


# What a converter of a classifier may be told; save asks for zipmap.
CLASSIFIER = {"nocl": [True, False], "zipmap": [True, False, "columns"]}


def _register(estimator: Any, alias: str, convert: Any, regression: bool, options: Any) -> Any:
    from skl2onnx import update_registered_converter
    from skl2onnx.common.shape_calculator import (
        calculate_linear_classifier_output_shapes,
        calculate_linear_regressor_output_shapes,
    )

    shapes = (
        calculate_linear_regressor_output_shapes
        if regression
        else calculate_linear_classifier_output_shapes
    )
    update_registered_converter(estimator, alias, shapes, convert, options=options)
    return estimator
