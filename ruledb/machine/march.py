"""
Instruction-set levels, and what instructions need of the processor.

Source: System V ABI, AMD64 supplement, "Micro-architecture levels". No level has adx.
"""

from collections.abc import Mapping

__all__ = ["BASELINE", "LEVELS", "SILENT", "available"]

BASELINE = "x86-64"

LEVELS: Mapping[str, frozenset[str]] = {
    BASELINE: frozenset(),
    "x86-64-v2": frozenset({"popcnt"}),
    "x86-64-v3": frozenset({"popcnt", "lzcnt", "bmi1", "bmi2", "movbe"}),
}
"""Level → the features of the modelled instructions that it has."""

SILENT = frozenset({"tzcnt"})
"""
Mnemonics that older processors run as another instruction, without a trap (tzcnt as bsf): code that holds one
says nothing about the processor. Compilers write ``rep bsf`` for any processor.
"""


def available(level: str, shown: frozenset[str]) -> frozenset[str]:
    """The features of a processor of *level* (of an unknown one: the baseline) that is known to have those of *shown*, too."""
    return LEVELS.get(level, LEVELS[BASELINE]) | shown
