"""The records through which Python tells the machine code of a call what to expect.

Each table gives the fields of a record in order, as name and LLVM type. The LLVM text and the ctypes structures are
both made from it.
"""

from __future__ import annotations

Fields = tuple[tuple[str, str], ...]

INPUT_FIELDS: Fields = (
    ("descriptor", "ptr"),  # the dtype object
    ("type_number", "i32"),
    ("rank", "i32"),
    ("dims", "ptr"),
    ("size_bytes", "i64"),
    ("required_flags", "i32"),
    ("is_donated", "i32"),
)
OUTPUT_FIELDS: Fields = (
    ("descriptor", "ptr"),
    ("dims", "ptr"),
    ("rank", "i32"),
    ("alias", "i32"),  # the input whose array is the result, or -1
    ("is_large", "i64"),  # whether `result_handler` provides the memory
)
CALL_FIELDS: Fields = (
    ("entry", "ptr"),
    ("context", "ptr"),
    ("arena", "ptr"),  # a free arena, or null while a call uses it
    ("arena_bytes", "i64"),
    ("releases_lock", "i32"),
    ("returns_tuple", "i32"),
    ("has_donations", "i32"),
    ("unused", "i32"),
    ("inputs", "ptr"),
    ("outputs", "ptr"),
    ("num_inputs", "i64"),
    ("num_outputs", "i64"),
    ("slow_path", "ptr"),  # Python object, called with arguments of any kind
    ("raise_status", "ptr"),  # Python function (slow path object, status) that raises
    ("array_type", "ptr"),
    ("new_array", "ptr"),  # PyArray_NewFromDescr
    ("set_handler", "ptr"),  # PyDataMem_SetHandler
    ("result_handler", "ptr"),  # NumPy's handler object for large results
    ("none", "ptr"),
)
BOUND_FIELDS: Fields = (("call", "ptr"), ("params", "ptr"), ("results", "ptr"))

_TABLES = {"Input": INPUT_FIELDS, "Output": OUTPUT_FIELDS, "Call": CALL_FIELDS, "Bound": BOUND_FIELDS}


def record_types() -> str:
    """The records as LLVM types: `%Input`, `%Output`, `%Call`, `%Bound`."""
    return "".join(f"%{name} = type {{ {', '.join(kind for _, kind in rows)} }}\n" for name, rows in _TABLES.items())


def field_addresses() -> dict[str, str]:
    """LLVM text by `Record_field`: the address of the field in the record that the pointer `%record` points to."""
    return {
        f"{name}_{field}": f"getelementptr inbounds %{name}, ptr %{name.lower()}, i32 0, i32 {index}"
        for name, rows in _TABLES.items()
        for index, (field, _) in enumerate(rows)
    }
