"""
Records that Python fills and the compiled loops read: 64-bit words, named by position; and packed costs and masks.

A cost is one word, bytes in bits 62..42, cycles in 41..21, µops in 20..0: costs add, and compare by bytes first. What a
sequence needs is one word of eight-bit sets: slots written, slots whose family it needs by name, constant symbols.
"""

import numpy as np

from ruledb.machine.states import Words

__all__ = [
    "ALONE", "COST_BITS", "COST_GUARD", "DESCRIPTOR", "ENTRY", "FIND_BITS", "HEAD", "LOW8", "N_FILTER_BIT",
    "PARAMETERS", "POINTERS", "by_cycles", "cost_word", "costs_of", "mask_word",
]  # fmt: skip

ALONE, LOW8 = 1, 1 << 8
"""Bits of a descriptor's *probes*: the result alone, and its low 8 bits; bit ``1 + e``: together with slot e."""

COST_BITS = 21
COST_GUARD = 1 << 20 | 1 << 41 | 1 << 62
"""The top bit of each field of a cost, never set in one: fields are compared by one subtraction."""

N_FILTER_BIT = (0, 5)
"""Where in a fingerprint's upper half the numbers of its two filter bits begin; its top bits are the number of the filter's word."""

HEAD = ("length", "forbidden")
"""What a list begins with: its length, and what all of its classes forbid."""

ENTRY = 5
"""Words of an entry of a list: the class and its kind, 32 bits each, then its sign, 32 bits for each word of a row."""

FIND_BITS = 16
"""A find is the place of a list and, in its lowest bits, the number of a state in its block."""

DESCRIPTOR = (
    "pack", "step", "in0", "in1", "in2", "in3", "constants", "slot", "probes", "output", "partner", "out0", "out1", "mask", "cost",
)  # fmt: skip
"""
Columns of an instruction's row. *constants*: the address of its constant on each state. *output*: the kernel's output that
the row probes, into *slot*; *partner*: the probe (1 + slot) of its other output, which pairs with the new value, not the old.
*out0*, *out1*: slots of all outputs. -1: there is none.
"""

PARAMETERS = (
    "n", "offset", "stride", "states", "slots", "values", "flags", "masks", "costs", "descriptors", "first", "count", "work", "keys",
    "filter", "filter_shift", "table", "table_shift", "low8", "low8_lists", "lists", "classes", "limits", "hits",
    "capacity", "n_hits", "n_finds", "poison", "rows", "kinds", "signed", "forbidden", "dearest",
)  # fmt: skip
"""
What a call of the scan is given: *n* states from *offset* of a level: *values* [slot][state][stride], *flags* [state][stride],
*masks* and *costs* [stride]. *work* holds (6 + slots) rows of *n* words, rounded up to 64, and 64 words more. A *row* of eight
words holds what one state has in each slot and, last, the flags. *keys*: a word for each slot. *filter*: 32-bit words. *table*
pairs (fingerprint, list), 0 empty; *low8* [slot][2048] 32-bit words of bits, *low8_lists* [slot][65536] lists; *lists*: for each
its head, then its entries. *kinds*: a row of live bits for each, *signed*: where they are in a sign; *forbidden* [kind]. *classes*
[class]: a row for each state, the fingerprint states last; *dearest* [class]: the cost with the guard bits set, less one in each
field (a cheaper candidate's leaves one of them set); *limits* [class][2] costs, by bytes and by cycles. *rows* is room for a row
a state and one more. Written: *first*, the row to go on with where there was no room for more *hits* (class, row << 32 | state),
*n_hits*, and *n_finds*, the fingerprints found.
"""

POINTERS = frozenset(
    {
        "values", "flags", "masks", "costs", "descriptors", "work", "keys", "filter", "table", "low8", "low8_lists", "lists", "classes",
        "limits", "hits", "poison", "rows", "constants", "kinds", "signed", "forbidden", "dearest",
    }
)  # fmt: skip
"""Fields that are addresses of data."""


def cost_word(n_bytes: int, cycles: int, uops: int) -> int:
    """A cost as one word."""
    return n_bytes << 2 * COST_BITS | cycles << COST_BITS | uops


def costs_of(word: int) -> tuple[int, int, int]:
    """(bytes, cycles, µops) of a cost word."""
    field = (1 << COST_BITS) - 1
    return word >> 2 * COST_BITS, word >> COST_BITS & field, word & field


def by_cycles(costs: Words) -> Words:
    """Cost words turned so that they compare by cycles, then µops, then bytes."""
    turned: Words = (costs << np.uint64(COST_BITS)) & np.uint64((1 << 3 * COST_BITS) - 1) | costs >> np.uint64(2 * COST_BITS)
    return turned


def mask_word(writes: int, fixed: int, symbols: int) -> int:
    """Sets of slots written, slots needed by name and constant symbols as one word."""
    return writes | fixed << 8 | symbols << 16
