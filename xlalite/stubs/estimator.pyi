# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.client.canned_estimators import (
    DNNClassifier as DNNClassifier, DNNLinearCombinedClassifier as DNNLinearCombinedClassifier,
    DNNLinearCombinedRegressor as DNNLinearCombinedRegressor, DNNRegressor as DNNRegressor,
    LinearClassifier as LinearClassifier, LinearRegressor as LinearRegressor
)
from xlalite.client.estimator import Estimator as Estimator
from xlalite.client.estimator_spec import (
    EstimatorSpec as EstimatorSpec, EvalSpec as EvalSpec, ModeKeys as ModeKeys, RunConfig as RunConfig,
    TrainSpec as TrainSpec, WarmStartSettings as WarmStartSettings
)
from xlalite.client.train_and_evaluate import (
    FinalExporter as FinalExporter, LatestExporter as LatestExporter, train_and_evaluate as train_and_evaluate
)
from xlalite.stubs import estimator_export as _estimator_export, estimator_inputs as _estimator_inputs

export = _estimator_export
inputs = _estimator_inputs
