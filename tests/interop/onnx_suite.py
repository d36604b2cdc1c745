"""Runs the test cases of the installed onnx package: `python tests/interop/onnx_suite.py [pattern ...]`.

Cases that are expected to fail stand in `EXPECTED`, each with its reason; anything else that fails, and anything there
that passes, is told, and the exit code is 1. The models of the category `real` are downloads and are left out.
"""

from __future__ import annotations

import argparse
import re
import unittest
import warnings
from collections import Counter

EXPECTED = {
    r"string|regex_full_match|strnorm|label_encoder|tfidfvectorizer": "strings have no element type in HLO",
    r"image_decoder": "pictures as files are not decoded",
    r"ai_onnx_ml_": "trees and feature extraction of ai.onnx.ml have no rules",
    r"bernoulli|training_dropout_(default_)?(mask_)?cpu": "draws other random numbers",
    r"attention_4d_causal_fp16": "rounds half precision elsewhere than NumPy, by two units",
    r"dft_inverse_(opset19_)?cpu": "expects the rounding of single precision where the result is 0",
    r"loop16_seq_none": "the suite takes the length of the scalars in a sequence",
    r"adagrad|adam|test_(nesterov_)?momentum|gradient_of": "training operators have no rules",
}
"""Patterns of names and why such cases fail."""
_CASE = re.compile(r"(test_\w+?)_cpu$")


def cases(patterns: list[str]) -> dict[str, list[unittest.TestCase]]:
    """The cases of the package by category, those whose names fit one of the patterns."""
    from onnx.backend.test import BackendTest

    from xlalite.interop.onnx.backend import XlaliteBackend

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package computes what it expects, overflow and all
        found = BackendTest(XlaliteBackend, __name__).test_cases
    chosen: dict[str, list[unittest.TestCase]] = {}
    for category, tests in found.items():
        names = [name for name in unittest.defaultTestLoader.getTestCaseNames(tests) if _CASE.search(name)]
        if patterns:
            names = [name for name in names if any(re.search(pattern, name) for pattern in patterns)]
        if "Real" not in category:
            chosen[category.removeprefix("OnnxBackend").removesuffix("Test")] = [tests(name) for name in names]
    return chosen


def expected_reason(name: str) -> str | None:
    """Why a case is expected to fail; None for one that must pass."""
    return next((reason for pattern, reason in EXPECTED.items() if re.search(pattern, name)), None)


def failure_of(case: unittest.TestCase) -> str | None:
    """What went wrong with a case; None where nothing did."""
    result = unittest.TestResult()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case.run(result)
    problems = [text for _, text in (*result.failures, *result.errors)]
    return problems[0].strip().splitlines()[-1] if problems else None


def main() -> int:
    """Runs the cases and compares what fails with what is expected to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("patterns", nargs="*", help="parts of names; all cases if left out")
    options = parser.parse_args()
    wrong = 0
    reasons: Counter[str] = Counter()
    for category, chosen in cases(options.patterns).items():
        passed = 0
        for case in chosen:
            name = case.id().rsplit(".", 1)[-1]
            problem, reason = failure_of(case), expected_reason(name)
            passed += problem is None
            if problem is not None and reason is not None:
                reasons[reason] += 1
            elif problem is not None:
                print(f"{name}: {problem}")
                wrong += 1
            elif reason is not None:
                print(f"{name} passes, but is expected to fail: {reason}")
                wrong += 1
        print(f"{category}: {passed} of {len(chosen)} pass")
    for reason, count in reasons.most_common():
        print(f"{count} expected failures: {reason}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
