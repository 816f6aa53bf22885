"""
What of a sequence its canonical forms share, symbolic and literal: a cheap test of whether some pattern can match at all.

It is the shape of each instruction (mnemonic and kinds of operands, whatever the registers are) and which registers are
the same, since canonical names are given to one family each.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ruledb.machine.canonical import LITERALS
from ruledb.machine.instruction import Imm, Instruction, Label, Mem, Operand, registers_of
from ruledb.machine.registers import Register

__all__ = ["Part", "Shape", "equalities", "outline_of", "part_of", "shape_of"]

Shape = tuple[object, ...]
Part = tuple[int, tuple[int, ...]]
"""An instruction's part in an outline: the number of its shape, and the families of the registers that it names, in text order."""


def outline_of(parts: Sequence[Part]) -> tuple[int, ...]:
    """The outline of a sequence."""
    families = [family for _, named in parts for family in named]
    return (*(shape for shape, _ in parts), *map(families.index, families))


def part_of(instruction: Instruction, numbers: Mapping[Shape, int]) -> Part | None:
    """The part of *instruction*, whose shape has one of *numbers*; None where it has none."""
    number = numbers.get(shape_of(instruction))
    families = (register.family for operand in instruction.operands for register in registers_of(operand))
    return None if number is None else (number, tuple(families))


def shape_of(instruction: Instruction) -> Shape:
    """What of *instruction* its canonical forms share by itself: all but registers and most constants."""
    return (instruction.mnemonic, *map(_operand_shape, instruction.operands))


def _operand_shape(operand: Operand) -> object:
    match operand:
        case Register(width=width, high=high):
            return width, high
        case Imm(value):
            return "imm", value if value in LITERALS else None
        case Mem(base, index, scale, displacement, width, rip, segment):
            known = displacement if displacement in LITERALS and not rip else None
            return base is not None, index is not None, scale, known, width, rip, segment
        case Label():
            return "label"
        case _:
            return operand


def equalities(families: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Per row of *families*, a hash of which of its elements are equal."""
    found = np.zeros(len(families), dtype=np.uint64)
    for column in range(1, families.shape[1]):
        first = np.argmax(families[:, : column + 1] == families[:, column, None], axis=1)
        found = found * np.uint64(0x9E3779B97F4A7C15) + first.astype(np.uint64)
    return found
