"""Estimators: what a model function and input functions make of a folder."""

import numpy as np
import pytest

import xlalite as tf

X = np.float32([[1, 2], [3, 1], [0, 1], [2, 2]])
Y = X @ np.float32([[2], [-1]]) + 0.5


def model(features, labels, mode, params):
    kernel = tf.get_variable("kernel", [2, 1], initializer=tf.zeros_initializer())
    bias = tf.get_variable("bias", [1], initializer=tf.zeros_initializer())
    predictions = {"value": tf.matmul(features["x"], kernel) + bias, "row": features["x"]}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions)
    loss = tf.losses.mean_squared_error(labels, predictions["value"])
    step = tf.train.GradientDescentOptimizer(params["rate"]).minimize(loss, tf.train.get_global_step())
    metrics = {"distance": tf.metrics.mean_absolute_error(labels, predictions["value"])}
    return tf.estimator.EstimatorSpec(mode, predictions, loss, step, metrics)


def estimator(folder, **options):
    return tf.estimator.Estimator(model, str(folder), params={"rate": 0.1}, **options)


def batches(epochs=1, size=2):
    return tf.estimator.inputs.numpy_input_fn({"x": X}, Y, size, epochs, shuffle=False)


def test_training_goes_on_from_the_last_checkpoint(tmp_path):
    made = estimator(tmp_path).train(batches(None), steps=3)
    assert made.get_variable_value("global_step") == 3
    estimator(tmp_path).train(batches(None), steps=2)
    estimator(tmp_path).train(batches(None), max_steps=300)
    assert estimator(tmp_path).train(batches(None), max_steps=300).latest_checkpoint().endswith("model.ckpt-300")
    np.testing.assert_allclose(made.get_variable_value("kernel"), [[2], [-1]], atol=1e-2)
    assert {"bias", "global_step", "kernel"} <= set(made.get_variable_names())


def test_frames_of_pandas_are_features_by_column():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "z"]}, index=[7, 8, 9])
    labels = pandas.Series([0, 1, 0], index=frame.index)
    inputs = tf.estimator.inputs.pandas_input_fn
    with tf.Graph().as_default(), tf.Session() as session:
        features, wanted = session.run(inputs(frame, labels, 2, shuffle=False)())
        named = session.run(inputs(frame, frame[["a"]], shuffle=False)())[1]
    assert features["index"].tolist() == [7, 8]
    assert (features["a"].tolist(), features["b"].tolist(), wanted.tolist()) == ([1, 2], [b"x", b"y"], [0, 1])
    assert named["a"].tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="Index for x and y"):
        inputs(frame, labels[:2], shuffle=False)
    with pytest.raises(ValueError, match="already has a column"):
        inputs(frame, labels, shuffle=False, target_column="a")


def test_evaluation_goes_over_all_batches_or_some(tmp_path):
    made = estimator(tmp_path).train(batches(None), max_steps=1)
    weights = [made.get_variable_value(name) for name in ("kernel", "bias")]
    found = X @ weights[0] + weights[1]
    results = made.evaluate(batches())
    assert results["global_step"] == 1
    np.testing.assert_allclose(results["loss"], np.mean((found - Y) ** 2), rtol=1e-5)
    np.testing.assert_allclose(results["distance"], np.mean(abs(found - Y)), rtol=1e-5)
    some = made.evaluate(batches(), steps=1, name="some")
    np.testing.assert_allclose(some["distance"], np.mean(abs(found - Y)[:2]), rtol=1e-5)
    (events,) = (tmp_path / "eval_some").iterdir()
    tags = {value.tag for event in tf.train.summary_iterator(str(events)) for value in event.summary.value}
    assert tags == {"distance", "loss"}


def test_predictions_come_by_example_or_by_batch(tmp_path):
    made = estimator(tmp_path)
    rows = list(made.predict(batches(), predict_keys="row"))
    assert [set(row) for row in rows] == [{"row"}] * 4
    np.testing.assert_array_equal([row["row"] for row in rows], X)
    assert [len(batch["value"]) for batch in made.predict(batches(), yield_single_examples=False)] == [2, 2]
    with pytest.raises(ValueError, match=r"Expected to run at least one output from \['no'\]"):
        next(made.predict(batches(), predict_keys=["no"]))


def test_hooks_and_listeners_are_called(tmp_path):
    class Listener(tf.train.CheckpointSaverListener):
        saved = ()

        def after_save(self, session, global_step_value):
            self.saved = (*self.saved, global_step_value)

    class Counter(tf.train.SessionRunHook):
        count = 0

        def after_run(self, run_context, run_values):
            self.count += 1

    counter, listener = Counter(), Listener()
    config = tf.estimator.RunConfig(save_checkpoints_steps=2, keep_checkpoint_max=1)
    estimator(tmp_path, config=config).train(batches(None), [counter], steps=5, saving_listeners=[listener])
    assert counter.count == 5
    assert listener.saved == (0, 2, 4, 5)
    assert len(list(tmp_path.glob("model.ckpt-*.index"))) == 1


def test_training_begins_with_another_models_values(tmp_path):
    first = estimator(tmp_path / "first").train(batches(None), steps=20)
    start = tf.estimator.WarmStartSettings(first.model_dir, "kernel")
    second = estimator(tmp_path / "second", warm_start_from=start).train(batches(None), max_steps=1)
    begun = tf.train.load_variable(str(tmp_path / "second" / "model.ckpt-0"), "kernel")
    np.testing.assert_array_equal(begun, first.get_variable_value("kernel"))
    assert tf.train.load_variable(str(tmp_path / "second" / "model.ckpt-0"), "bias") == 0
    assert second.get_variable_value("global_step") == 1


def test_a_trained_model_is_exported_and_loaded(tmp_path):
    made = estimator(tmp_path / "model").train(batches(None), steps=5)
    receiver = tf.estimator.export.build_raw_serving_input_receiver_fn({"x": tf.zeros([1, 2])})
    folder = made.export_savedmodel(str(tmp_path / "out"), receiver).decode()
    expected = [row["value"] for row in made.predict(batches())]
    with tf.Graph().as_default(), tf.Session() as session:
        signature = tf.saved_model.load(session, ["serve"], folder).signature_def["serving_default"]
        found = session.run(signature.outputs["value"].name, {signature.inputs["x"].name: X})
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_train_and_evaluate_gives_the_metrics(tmp_path):
    train = tf.estimator.TrainSpec(batches(None), max_steps=4)
    results, _ = tf.estimator.train_and_evaluate(estimator(tmp_path), train, tf.estimator.EvalSpec(batches()))
    assert results["global_step"] == 4


@pytest.mark.parametrize(("throttle", "expected"), [(0, [2, 4, 5]), (600, [2, 5])])
def test_evaluation_follows_checkpoints_unless_the_last_is_not_long_ago(tmp_path, throttle, expected):
    steps = []

    class Exporter:
        name = "best"

        def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
            steps.append((int(eval_result["global_step"]), checkpoint_path[-1:], is_the_final_export))
            return export_path

    made = estimator(tmp_path, config=tf.estimator.RunConfig(save_checkpoints_steps=2))
    train = tf.estimator.TrainSpec(batches(None), max_steps=5)
    spec = tf.estimator.EvalSpec(batches(), exporters=Exporter(), throttle_secs=throttle)
    results, exports = tf.estimator.train_and_evaluate(made, train, spec)
    assert steps == [(step, str(step), step == 5) for step in expected]
    assert results["global_step"] == 5
    assert exports == [str(tmp_path / "export" / "best")]
    tf.estimator.train_and_evaluate(made, train, spec)
    assert steps[len(expected) :] == [(5, "5", True)]


def test_models_are_exported_after_evaluations(tmp_path, monkeypatch):
    monkeypatch.setattr("xlalite.client.estimator.time.time", lambda: 1_700_000_000.0)  # all in one second
    receiver = tf.estimator.export.build_raw_serving_input_receiver_fn({"x": tf.zeros([1, 2])})
    exporters = [
        tf.estimator.LatestExporter("latest", receiver, exports_to_keep=1),
        tf.estimator.FinalExporter("final", receiver),
    ]
    made = estimator(tmp_path, config=tf.estimator.RunConfig(save_checkpoints_steps=1))
    train = tf.estimator.TrainSpec(batches(None), max_steps=3)
    spec = tf.estimator.EvalSpec(batches(), exporters=exporters, throttle_secs=0)
    _, exports = tf.estimator.train_and_evaluate(made, train, spec)
    for name, path in zip(("latest", "final"), exports, strict=True):
        assert [str(each) for each in (tmp_path / "export" / name).iterdir()] == [path.decode()]
        assert (tmp_path / "export" / name / path.decode() / "saved_model.pb").exists()
    with pytest.raises(ValueError, match="positive"):
        tf.estimator.LatestExporter("latest", receiver, exports_to_keep=0)


def test_listeners_hear_of_a_saver_that_was_given(tmp_path):
    saver = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=2)
    train = tf.estimator.TrainSpec(batches(None), max_steps=2, hooks=[saver])
    results, _ = tf.estimator.train_and_evaluate(estimator(tmp_path), train, tf.estimator.EvalSpec(batches()))
    assert results["global_step"] == 2


def test_tpu_estimator_tells_batch_sizes_and_measures_with_a_function(tmp_path):
    sizes = {}

    def input_fn(params):
        sizes[params["batch_size"]] = True
        return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat(2).batch(params["batch_size"])

    def model_fn(features, labels, mode, params):
        spec = model(features, labels, mode, {"rate": 0.1})
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.contrib.tpu.TPUEstimatorSpec(mode, predictions=spec.predictions)
        measure = (lambda y, value: {"mean": tf.metrics.mean(y - value)}, [labels, spec.predictions["value"]])
        return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=spec.loss, train_op=spec.train_op, eval_metrics=measure)

    made = tf.contrib.tpu.TPUEstimator(
        model_fn,
        config=tf.contrib.tpu.RunConfig(model_dir=str(tmp_path), tpu_config=tf.contrib.tpu.TPUConfig(8)),
        use_tpu=False,
        train_batch_size=4,
        eval_batch_size=2,
        predict_batch_size=1,
    )
    made.train(input_fn)
    assert set(made.evaluate(input_fn)) == {"global_step", "loss", "mean"}
    assert len(list(made.predict(input_fn))) == 8
    assert list(sizes) == [4, 2, 1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tf.estimator.EstimatorSpec("train", loss=tf.zeros([])), "Missing train_op"),
        (lambda: tf.estimator.EstimatorSpec("test"), "mode 'test' is not one of"),
        (lambda: tf.estimator.inputs.numpy_input_fn(X, Y), "shuffle must be provided"),
        (lambda: tf.estimator.inputs.numpy_input_fn(X, Y[:2], shuffle=False), r"mismatched: \[2, 4\]"),
        (lambda: tf.contrib.tpu.TPUEstimator(model, params={"batch_size": 1}), "reserved"),
        (lambda: tf.estimator.Estimator(lambda features: None).train(batches(), steps=1), "does not take labels"),
        (lambda: tf.estimator.Estimator(lambda features, labels: 3).train(batches()), "should return an EstimatorSpec"),
        (lambda: tf.estimator.Estimator(model).train(batches(), steps=1, max_steps=1), "both steps and max_steps"),
    ],
)
def test_what_is_wrong_is_said(make, message):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        make()
