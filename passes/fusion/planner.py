"""Decides which instructions of a computation share kernels.

Instructions are visited users first. Each joins the kernel of its users when all of them are in one, when it is cheap
enough for each to compute it again, or as a second output; otherwise it starts a kernel of its own. Every refusal is a
record with its reason.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Trait
from xlalite.hlo.ir.traversal import reachable
from xlalite.hlo.records import dataclass
from xlalite.passes.analysis.matrix_products import has_tiles, is_in_phases, is_matrix_product
from xlalite.passes.fusion.domain import Domain, Place, place_of_result, reduced_domain, reduces_columns
from xlalite.passes.fusion.fusible import (
    is_cheap_to_repeat,
    is_expensive,
    is_immediate,
    is_index_vector,
    is_small_window,
    is_spread_immediate,
    why_not_fusible,
)
from xlalite.passes.fusion.group import KernelGroup
from xlalite.passes.fusion.kernel_order import KernelOrder
from xlalite.passes.fusion.kernel_shape import KernelKind, kernel_domains, result_dims
from xlalite.passes.fusion.seams import find_seams, is_worth_splitting
from xlalite.passes.fusion.updated_memory import (
    is_rewritten,
    is_scattered_into,
    is_updated_in_place,
    touches_updated_memory,
)

Note = tuple[tuple[str, ...], str, str, dict[str, int | float | str]]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one kernel.

    Attributes:
        members: Instructions, but for constants.
        reductions: Instructions that reduce.
        row_bytes: Bytes of one row that several passes of a row kernel may read again out of the nearest cache.
        search: Looks at kernels to prove that a second output closes no cycle.
        dot_epilogues: Whether elementwise work after a dot joins the dot's kernel.
    """

    members: int = 128
    reductions: int = 8
    row_bytes: int = 1 << 20
    search: int = 2000
    dot_epilogues: bool = False


_MEMBERS_IN_PIECE = 4

_MOST_PARTS = 8
"""Parts of what is computed that a kernel computes each by code of its own."""

_COMPUTING_OPERANDS = (KernelKind.ROW, KernelKind.COLUMN, KernelKind.CONCATENATE, KernelKind.CUMULATIVE)
"""Kinds around what no loop computes element by element, whose kernels compute its operands all the same."""


class FusionPlanner:
    """Plans the kernels of one computation."""

    def __init__(self, computation: HloComputation, limits: Limits, no_outputs: Collection[HloInstruction]) -> None:
        self._computation = computation
        self._limits = limits
        self._no_outputs = no_outputs
        self.notes: list[Note] = []
        self._groups_of: dict[HloInstruction, list[KernelGroup]] = {}
        self._order = KernelOrder(self._groups_of)
        self._reduce_behind: dict[HloInstruction, HloInstruction] = {}

    def plan(self) -> list[KernelGroup]:
        """The kernels with more than one member, users first."""
        groups: list[KernelGroup] = []
        post_order = self._computation.post_order()
        self._reduce_behind = _reduces_behind(post_order)
        for instruction in reversed(post_order):
            needs_kernel = _needs_kernel(instruction)
            renames = not needs_kernel or instruction.opcode == "reshape"
            if renames:
                self._join_readers(instruction)
            if needs_kernel and self._join_users(instruction):
                continue
            if renames:
                self._order.place(instruction)
                continue
            self._join_readers(instruction)
            group = _new_group(instruction)
            self._order.place(group)
            self._groups_of.setdefault(instruction, []).append(group)
            groups.append(group)
        for group in groups:
            self._add_immediates(group)
        groups.sort(key=self._order.height)
        return [group for group in groups if len(group) > 1 and group.domain is not None]

    def _join_users(self, producer: HloInstruction) -> bool:
        """Makes the producer a member of its users' kernels, if that pays."""
        if producer is self._computation.root or not producer.users:
            return False
        groups = list(dict.fromkeys(group for user in producer.users for group in self._groups_of.get(user, ())))
        outside = any(user not in self._groups_of for user in producer.users)
        if not groups or producer.control_predecessors or producer.control_successors:
            return False
        if not outside:
            groups = self._groups_for_all(producer, groups)
            if len(groups) < 2:
                return not groups or self._join_one(producer, groups[0])
        if is_cheap_to_repeat(producer) and why_not_fusible(producer) is None:
            return self._join_all(producer, groups, outside=outside)
        is_costly = producer.opcode == "reduce" or (is_expensive(producer) and why_not_fusible(producer) is None)
        if is_costly and not outside and self._join_siblings(producer, groups):
            return True
        return any(self._join_as_output(producer, group) for group in groups)

    def _groups_for_all(self, producer: HloInstruction, groups: list[KernelGroup]) -> list[KernelGroup]:
        """The one kernel that needs all of a producer, when others, which then compute theirs, need few elements."""
        may_share = len(groups) > 1 and why_not_fusible(producer) is None
        few = [group for group in groups if group.needs_few(producer)] if may_share else []
        if len(groups) - len(few) > 1:
            return groups
        joined = [group for group in few if self._join_one(producer, group)]
        for group in joined:
            group.duplicates.add(producer)
        return [group for group in groups if group not in joined]

    def _join_one(self, producer: HloInstruction, group: KernelGroup) -> bool:
        reason = self._try_join(producer, group)
        self._explain(producer, group, reason)
        return reason is None

    def _join_all(self, producer: HloInstruction, groups: list[KernelGroup], *, outside: bool) -> bool:
        """Every kernel computes its own copy; the producer keeps one for users outside kernels."""
        refusals = []
        for group in groups:
            reason = self._try_join(producer, group)
            self._explain(producer, group, reason)
            if reason is None:
                group.duplicates.add(producer)
            else:
                refusals.append(reason)
        return not refusals and not outside

    def _join_siblings(self, producer: HloInstruction, groups: list[KernelGroup]) -> bool:
        """Makes one kernel of several over rows that need what is reduced, or expensive, and that a member."""
        merged = self._siblings_over_rows(producer, groups)
        if merged is None:
            return False
        what = "reduction" if producer.opcode == "reduce" else "expensive elements"
        return self._join_one(producer, self._put_together(groups, merged, f"both need the same {what}"))

    def _join_readers(self, read: HloInstruction) -> None:
        """Makes one kernel of those that reduce the same rows, or columns, of an array."""
        elements = read.shape.element_count if read.shape.is_array else 0
        users = dict.fromkeys(group for user in read.users for group in self._groups_of.get(user, ()))
        over: dict[Domain, list[KernelGroup]] = {}
        for group in users:
            domain = group.domain if group.kind in (KernelKind.ROW, KernelKind.COLUMN) else None
            if domain is not None and domain.element_count == elements:
                over.setdefault(domain, []).append(group)
        for domain, groups in over.items():
            first, *others = groups
            for other in others:
                merged = self._over_rows([first, other], domain)
                if merged is None or merged.place_of_operand(read)[1] > 1:
                    first = other
                else:
                    self._put_together([first, other], merged, f"both read {read.name}")

    def _put_together(self, groups: Sequence[KernelGroup], merged: KernelGroup, reason: str) -> KernelGroup:
        """Makes the first of some kernels what they are together."""
        first, *others = groups
        first.become(merged)
        for other in others:
            for member in other.places:
                kept = [group for group in self._groups_of[member] if group not in (first, other)]
                self._groups_of[member] = [*kept, first]
            self.notes.append(((other.root.name, first.root.name), "fused side by side", reason, {}))
            other.places = {}
        self._order.merge(first)
        return first

    def _siblings_over_rows(self, producer: HloInstruction, groups: list[KernelGroup]) -> KernelGroup | None:
        """The kernel that several would be together; None if they cannot be one."""
        rows = next((group.domain for group in groups if group.kind is KernelKind.ROW), None)
        domain, wanted = (reduced_domain(producer), Place.ROW) if producer.opcode == "reduce" else (rows, Place.FULL)
        if domain is None or not producer.shape.is_array or not domain.has_minor_columns:
            return None
        if not self._fits_nearest_cache(producer, domain):
            return None
        merged = self._over_rows(groups, domain)
        return None if merged is None or merged.place_of_operand(producer)[0] is not wanted else merged

    def _over_rows(self, groups: Sequence[KernelGroup], domain: Domain) -> KernelGroup | None:
        """One kernel over rows, or columns, in place of several; None if they cannot be one."""
        kind = KernelKind.ROW if domain.has_minor_columns else KernelKind.COLUMN
        merged = KernelGroup(groups[0].root, kind, domain)
        for group in groups:
            if group.kind is KernelKind.LOOP and group.domain is not None and group.domain.dims == domain.dims:
                group = group.with_domain(domain)
            if group.kind is not kind or group.domain != domain or group.root.shape.is_tuple:
                return None
            if group.has_seams:
                return None
            if any(merged.places.get(member, place) is not place for member, place in group.places.items()):
                return None
            for member, place in group.places.items():
                merged.add(member, place)
            merged.outputs += group.outputs
            merged.duplicates |= group.duplicates
            if merged.computed > self._limits.members or merged.reductions >= self._limits.reductions:
                return None
        merged.count_evaluations()
        users = ((user, output) for output in merged.outputs for user in output.users)
        if any(user in group and output not in group for user, output in users for group in groups):
            return None
        return None if self._order.leads_to(merged.outputs, groups, self._limits.search) else merged

    def _most_members(self, group: KernelGroup) -> int:
        """A concatenation has a loop for each operand, and so some instructions for each."""
        if group.kind is KernelKind.CONCATENATE:
            return max(self._limits.members, _MEMBERS_IN_PIECE * len(group.root.operands))
        return self._limits.members

    def _join_as_output(self, producer: HloInstruction, group: KernelGroup) -> bool:
        """The kernel computes the producer once, for itself and for others."""
        reason = self._why_not_output(producer, group)
        if reason is None:
            if producer.opcode != "reduce" and group.place_of_operand(producer)[0] is Place.OTHER:
                self._make_rows_for(producer, group)
            reason = self._try_join(producer, group)
        self._explain(producer, group, reason, verdict="fused as a second output")
        if reason is not None:
            return False
        group.outputs.append(producer)
        self._order.add_output(group, producer)
        return True

    def _try_join(self, producer: HloInstruction, group: KernelGroup) -> str | None:
        """Adds the producer to the kernel; the reason if it does not fit."""
        if group.computed >= self._most_members(group) and not is_spread_immediate(producer):
            return "the kernel has as many instructions as allowed"
        if producer.opcode == "reduce" and producer.shape.is_array:
            return self._try_join_reduce(producer, group)
        if has_tiles(producer) and self._limits.dot_epilogues and not is_in_phases(producer):
            return self._try_join_dot(producer, group)
        reason = why_not_fusible(producer) if producer.opcode != "concatenate" else self._why_not_split(producer, group)
        if reason is not None:
            return reason
        if group.domain is None:
            return f"{group.root.opcode} takes its operands from memory"
        if group.kind is KernelKind.UPDATE and touches_updated_memory(producer, group):
            return "it reads, or is, what the kernel updates in place"
        if group.kind is KernelKind.SCATTER and is_scattered_into(producer, group.root):
            return "it reads, or is, what the kernel scatters into"
        for product in filter(has_tiles, group.readers(producer)):
            return f"{product.opcode} takes its operands from memory"
        place, reads = group.place_of_operand(producer)
        if place is Place.OTHER and is_expensive(producer) and _repeats(producer, group):
            place = self._make_rows_for(producer, group)
        if place is None or (reads > 1 and not _is_free(producer)):
            is_repeated = reads > 2 and not _is_free(producer) and self._why_not_split(producer, group) is not None
            if (is_expensive(producer) or is_repeated) and not _is_shared_out(producer, group):
                return "the kernel would compute each element more than once"
            place = Place.OTHER
        if place is Place.OTHER and is_expensive(producer) and _repeats(producer, group):
            return "the kernel reads each element more than once and it is expensive"
        repeats = group.why_not_again(producer) if place is Place.OTHER else None
        if repeats is not None:
            return repeats
        self._add(producer, group, place)
        return None

    def _why_not_split(self, producer: HloInstruction, group: KernelGroup) -> str | None:
        """Why a kernel's loop cannot be split where a producer turns to another operand, as if it were all of them."""
        if is_index_vector(producer, group.readers(producer)):
            return None
        if producer.opcode not in ("concatenate", "pad") or group.kind not in (KernelKind.LOOP, KernelKind.UPDATE):
            return f"{producer.opcode} has a kernel of its own"
        if group.domain is None or group.root.shape.is_tuple:
            return f"{group.root.opcode} takes its operands from memory"
        if not group.has_seams and self._awaits_rows(group):
            return "a reduction or a product may join the kernel, and neither's loops can be split"
        results = group.outputs if group.kind is KernelKind.LOOP else group.root.operands[1:2]
        seams, elsewhere = find_seams(results, group.domain.dims, {*group.places, producer})
        if producer in elsewhere:
            return f"the loop cannot be split for a {producer.opcode} that it reads at another index"
        if not is_worth_splitting(group.domain.dims, seams):
            return "the loop would be split into too many or too narrow parts"
        return None

    def _awaits_rows(self, group: KernelGroup) -> bool:
        """Whether something that might still join a loop would turn it into another kind of kernel."""
        outside = [operand for member in group.places for operand in member.operands if operand not in group]
        near = itertools.islice(reachable(outside, _close_operands), self._limits.members)
        return any(one.opcode in ("reduce", "dot") for one in near)

    def _make_rows_for(self, producer: HloInstruction, group: KernelGroup) -> Place | None:
        """Gives a loop rows when that lets it compute the producer once a row; the producer's place."""
        twin = self._with_rows_of(producer, group)
        if twin is None or twin.place_of_operand(producer)[0] is not Place.ROW:
            return Place.OTHER
        group.become(twin)
        return Place.ROW

    def _with_rows_of(self, producer: HloInstruction, group: KernelGroup) -> KernelGroup | None:
        """A loop as a kernel over the rows that are reduced to the producer; None if it cannot be one."""
        reduce = self._reduce_behind.get(producer)
        if reduce is None or group.kind is not KernelKind.LOOP or group.domain is None or group.has_seams:
            return None
        domain = reduced_domain(reduce)
        if not domain.has_minor_columns or domain.dims != group.domain.dims or not reduce.shape.is_array:
            return None
        return group.with_domain(domain) if self._fits_nearest_cache(reduce, domain) else None

    def _try_join_reduce(self, producer: HloInstruction, group: KernelGroup) -> str | None:
        """A reduce joins a kernel over the same rows, or turns a loop into one."""
        domain = reduced_domain(producer)
        if group.kind not in (KernelKind.LOOP, KernelKind.ROW, KernelKind.COLUMN) or group.domain is None:
            return f"{group.root.opcode} takes its operands from memory"
        if group.reductions >= self._limits.reductions:
            return "the kernel has as many reductions as allowed"
        if group.has_seams:
            return "the kernel's loop is split, and no loop of rows can be"
        if group.kind is KernelKind.LOOP:
            if group.domain.dims not in (domain.dims, domain.row_dims):
                return "the kernel does not walk over the same rows"
            if group.domain.dims == domain.dims and not domain.has_minor_columns:
                return "it reduces dimensions other than the minor ones"
            candidate = group.with_domain(domain)
        else:
            candidate = group
        if not reduces_columns(producer, candidate.domain or domain):
            return "the kernel reduces other rows"
        if candidate.place_of_operand(producer)[0] is not Place.ROW:
            return "its result is not read once a row"
        if candidate.kind is KernelKind.COLUMN and _feeds_elements(producer, candidate):
            return "another reduction of columns needs it for each element, and no kernel keeps columns for that"
        reads_rows_again = candidate.reductions or Place.FULL in candidate.places.values()
        if candidate.kind is KernelKind.ROW and reads_rows_again and not self._fits_nearest_cache(producer, domain):
            return "a row does not fit into the nearest cache"
        group.become(candidate)
        self._add(producer, group, Place.ROW)
        return None

    def _fits_nearest_cache(self, producer: HloInstruction, rows: Domain) -> bool:
        return rows.column_count * producer.operand(0).shape.dtype.size_bytes <= self._limits.row_bytes

    def _try_join_dot(self, producer: HloInstruction, group: KernelGroup) -> str | None:
        """The elementwise work after a dot, or a convolution, moves into its kernel."""
        if group.kind is not KernelKind.LOOP or group.domain is None:
            return "only a loop over the dot's own result can follow it in its kernel"
        if producer.shape.dims != group.domain.dims or group.has_seams:
            return "the kernel walks over other sizes, or is split"
        place, _ = group.place_of_operand(producer)
        if place is not Place.FULL:
            return "the dot is not read at the kernel's own index"
        group.kind = KernelKind.DOT if is_matrix_product(producer) else KernelKind.CONVOLUTION
        self._add(producer, group, Place.FULL)
        return None

    def _why_not_output(self, producer: HloInstruction, group: KernelGroup) -> str | None:
        if group.kind not in (KernelKind.LOOP, KernelKind.ROW) or group.domain is None or group.root.shape.is_tuple:
            return f"{group.root.opcode} takes its operands from memory"
        candidate = self._with_rows_of(producer, group) or group
        if producer.opcode == "reduce" and candidate.kind is KernelKind.LOOP:
            return "it is needed elsewhere too, and the loop is none over its rows"
        place, _ = candidate.place_of_operand(producer)
        wanted = candidate.domain.shape_of(place) if place is not None and candidate.domain is not None else None
        if wanted is None or producer.shape.dims != wanted:
            return "it is needed elsewhere too, and its sizes are not those of the kernel's results"
        if producer in self._no_outputs:
            return "it is needed elsewhere too, and only a reduction in the kernel gives a loop results of rows"
        if self._order.leads_to((producer,), (group,), self._limits.search):
            return "another user of it comes before the kernel"
        near = itertools.islice(reachable((producer,), _close_operands), self._limits.members)
        if group.kind is KernelKind.ROW and any(one.opcode == "concatenate" for one in near):
            return "a concatenation that it is made of can only join a loop"
        return None

    def _add(self, producer: HloInstruction, group: KernelGroup, place: Place) -> None:
        group.add(producer, place)
        self._groups_of.setdefault(producer, []).append(group)

    def _add_immediates(self, group: KernelGroup) -> None:
        for member in list(group.places):
            for operand in member.operands:
                if is_immediate(operand) and operand not in group:
                    group.add(operand, Place.SCALAR)
                    group.duplicates.add(operand)

    def _explain(
        self, producer: HloInstruction, group: KernelGroup, reason: str | None, verdict: str = "fused"
    ) -> None:
        subject = (producer.name, group.root.name)
        if reason is None:
            self.notes.append((subject, verdict, "saves writing and reading it", {"bytes": producer.shape.size_bytes}))
        else:
            self.notes.append((subject, "not fused", reason, {"bytes": producer.shape.size_bytes}))


def _needs_kernel(instruction: HloInstruction) -> bool:
    """Whether something runs for it, or may; what only renames memory does where a kernel reads it, else nothing."""
    if instruction.op.has(Trait.CONTROL_FLOW) or is_immediate(instruction):
        return False
    return instruction.op.computes or why_not_fusible(instruction) is None


def _new_group(instruction: HloInstruction) -> KernelGroup:
    kinds = kernel_domains(instruction, (instruction,))
    kind, domain = next((k, d) for k, d in kinds if k is not KernelKind.UPDATE or not is_rewritten(instruction))
    grows = _takes_producers(instruction, kind)
    group = KernelGroup(instruction, kind, domain if grows else None, outputs=[instruction])
    group.add(instruction, place_of_result(result_dims(instruction), domain))
    return group


def _takes_producers(instruction: HloInstruction, kind: KernelKind) -> bool:
    """Whether a kernel around an instruction may compute more than that."""
    if instruction.opcode == "dynamic-update-slice":
        return kind is KernelKind.LOOP or is_updated_in_place(instruction)
    if kind is KernelKind.SCATTER:
        return instruction.shape.is_array and instruction.shape.dtype is instruction.operand(2).shape.dtype
    if instruction.opcode == "transpose":
        return kind is KernelKind.LOOP
    return kind in _COMPUTING_OPERANDS or is_small_window(instruction) or why_not_fusible(instruction) is None


def _reduces_behind(post_order: Sequence[HloInstruction]) -> dict[HloInstruction, HloInstruction]:
    """For each elementwise computation, a reduce of its sizes that it starts from, if there is one."""
    found: dict[HloInstruction, HloInstruction] = {}
    for instruction in post_order:
        if instruction.opcode == "reduce":
            found[instruction] = instruction
        elif instruction.op.is_elementwise:
            same_sizes = (o for o in reversed(instruction.operands) if o.shape.dims == instruction.shape.dims)
            behind = next((found[operand] for operand in same_sizes if operand in found), None)
            if behind is not None:
                found[instruction] = behind
    return found


def _close_operands(instruction: HloInstruction) -> Sequence[HloInstruction]:
    """What an instruction that may join a kernel has with it."""
    return instruction.operands if why_not_fusible(instruction) is None else ()


def _is_free(producer: HloInstruction) -> bool:
    if producer.opcode == "slice":
        return all(stride == 1 for _, _, stride in producer.attrs.slice)
    return producer.opcode in ("broadcast", "iota", "reshape") or is_immediate(producer)


def _is_shared_out(producer: HloInstruction, group: KernelGroup) -> bool:
    """Whether a few members read a part of the producer each, all together no more than there is."""
    assert group.evaluations is not None, "the root is a member"
    by_index = group.evaluations.by_index(producer, Place.OTHER, group.readers(producer))
    return len(by_index) <= _MOST_PARTS and sum(by_index.values()) <= producer.shape.element_count


def _feeds_elements(producer: HloInstruction, group: KernelGroup) -> bool:
    """Whether members that the kernel computes for each of its points need the producer."""
    behind = reachable(group.readers(producer), group.readers)
    return any(group.places[member] is not Place.ROW for member in behind)


def _repeats(producer: HloInstruction, group: KernelGroup) -> bool:
    """Whether the kernel computes more elements from the producer than it has."""
    assert group.domain is not None, "the caller asked"
    if group.kind is KernelKind.CONCATENATE:
        readers = [reader for reader in group.readers(producer) if reader is not group.root]
        return any(reader.shape.element_count > producer.shape.element_count for reader in readers)
    if group.kind is KernelKind.SCATTER or group.has_seams:
        assert group.evaluations is not None, "the root is a member"
        by_index = group.evaluations.by_index(producer, Place.OTHER, group.readers(producer))
        return sum(by_index.values()) > producer.shape.element_count
    return group.domain.element_count > producer.shape.element_count
