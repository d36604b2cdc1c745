"""The table of all operations for the documentation, made from their declarations."""

from __future__ import annotations

from collections.abc import Iterable

from xlalite.hlo.ir.op import OpDef
from xlalite.hlo.spelling.attributes import AttributeField, attribute_fields

HEADING = (
    "| operation | operands | attributes and called computations | shape | value |",
    "|---|---|---|---|---|",
)


def op_table(ops: Iterable[OpDef]) -> str:
    """A Markdown table with one line for each operation, by name.

    Attributes that may be left out stand in brackets; *written* shapes do not follow from the operands.
    """
    return "\n".join([*HEADING, *(_line(op) for op in sorted(ops, key=lambda op: op.name))]) + "\n"


def _line(op: OpDef) -> str:
    attributes = ", ".join([*map(_attribute, attribute_fields(op.attrs)), *_calls(op)])
    operands = "any" if op.arity is None else str(op.arity)
    shape = "written" if op.explicit_shape else "follows"
    return f"| `{op.name}` | {operands} | {attributes} | {shape} | {_escaped(op.summary)} |"


def _escaped(text: str) -> str:
    """Markdown would take `|` for the end of the column and `](` for a link."""
    return text.replace("|", r"\|").replace("](", r"]\(")


def _attribute(field: AttributeField) -> str:
    return f"`{field.text_name}`" if field.required else f"[`{field.text_name}`]"


def _calls(op: OpDef) -> list[str]:
    names = [f"`{name}=`" for name in op.calls.names]
    listed = f"`{op.calls.list_name}=`" if op.calls.list_name is not None else ""
    text = " or ".join(filter(None, [", ".join(names), listed]))
    if not text:
        return []
    return [f"[{text}]" if op.calls.optional else text]
