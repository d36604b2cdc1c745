"""`tf.contrib.slim.model_analyzer`: how large the variables of a model are, and what its operations give."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xlalite.framework.graph.graph import Graph


def tensor_description(var: Any) -> str:
    """Element type and shape, as `(float32 3x4)`."""
    sizes = "x".join(map(str, var.shape.as_list()))
    return f"({var.dtype.base_dtype.name} {sizes})" if sizes else f"({var.dtype.base_dtype.name})"


def analyze_vars(variables: Iterable[Any], print_info: bool = False) -> tuple[int, int]:
    """The number of elements of all variables, and of bytes; printed with each variable's if wanted."""
    elements = size_bytes = 0
    if print_info:
        print("---------\nVariables: name (type shape) [size]\n---------")
    for variable in variables:
        count = variable.shape.num_elements() or 0
        its_bytes = count * variable.dtype.size
        elements, size_bytes = elements + count, size_bytes + its_bytes
        if print_info:
            print(f"{variable.name} {tensor_description(variable)} [{count}, bytes: {its_bytes}]")
    if print_info:
        print(f"Total size of variables: {elements}\nTotal bytes of variables: {size_bytes}")
    return elements, size_bytes


def analyze_ops(graph: Graph, print_info: bool = False) -> int:
    """The number of elements of all outputs of known shape; printed with each output's if wanted."""
    total = 0
    if print_info:
        print("---------\nOperations: name -> (type shapes) [size]\n---------")
    for operation in graph.get_operations():
        counts = [output.shape.num_elements() or 0 for output in operation.outputs if output.shape.is_fully_defined()]
        total += sum(counts)
        if print_info:
            known = ", ".join(map(tensor_description, (x for x in operation.outputs if x.shape.is_fully_defined())))
            print(f"{operation.name} -> [{known}] [{sum(counts)}]")
    if print_info:
        print(f"Total size of operations: {total}")
    return total
