"""The interpreter backend: runs modules by the evaluator, unoptimised. Slow and right."""
