"""`tf.data`: pipelines that read and prepare elements on the host.

`sources.py` and `transformations.py` say what elements a dataset has, each as a Python iterator; `dataset.py` is what
users hold, `iterators.py` the operations that take the next element in a graph, `parsing.py` those that take examples
apart.
"""
