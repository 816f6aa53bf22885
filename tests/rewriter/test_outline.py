"""Outlines pass over no pattern that matches."""

import numpy as np
import pytest

from rewriter.outline import equalities, outline_of, part_of, shape_of
from ruledb.machine.canonical import canonicalise
from ruledb.machine.instruction import parse_sequence

TEXTS = (
    "mov eax, 5",
    "shl rdx, cl",
    "add ecx, 1",
    "lea rax, [rcx+rdx*4+8]",
    "cmp r8b, -1",
    "movzx eax, ch",
    "mov eax, ecx; shl eax, cl; add ecx, eax",
    "mul rdx; lea rsp, [rsp+rax]; mov rdx, rbx",
)


def outline(instructions):
    """The outline, with the shapes themselves for their numbers."""
    shapes = dict.fromkeys(map(shape_of, instructions))
    numbers = {shape: number for number, shape in enumerate(shapes)}
    return list(shapes), outline_of([part_of(i, numbers) for i in instructions])


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("literal", [False, True])
def test_canonical_forms_keep_the_outline(text, literal):
    """A sequence has the outline of both its canonical forms."""
    instructions = parse_sequence(text)
    assert outline(instructions) == outline(canonicalise(instructions, literal=literal).instructions)


def test_outlines_tell_registers_apart():
    """Which registers are equal is part of an outline."""
    assert outline(parse_sequence("mov eax, ecx; mov edx, eax")) != outline(parse_sequence("mov eax, ecx; mov edx, ecx"))


def test_unknown_shapes_have_no_part():
    """An instruction of a shape without a number is part of no outline."""
    assert part_of(parse_sequence("mov eax, ecx")[0], {}) is None


def test_equalities_are_those_of_the_plain_definition():
    """Rows have one hash exactly if the first places of their elements are the same."""
    rows = np.random.default_rng(1).integers(0, 3, (500, 5), dtype=np.uint8)
    plain = [tuple(map(row.index, row)) for row in rows.tolist()]
    hashes = equalities(rows).tolist()
    assert len(set(plain)) == len(set(hashes)) == len(set(zip(plain, hashes, strict=True)))
