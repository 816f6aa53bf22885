"""Registers, lanes, flags and their masks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruledb.machine.registers import (
    ALL_FLAGS,
    ALL_REGISTERS,
    EFFECTS,
    FLAG_BIT,
    FLAGS,
    MEMORY,
    N_FAMILIES,
    N_LANES,
    RBX,
    RSI,
    TAKEN,
    VIRTUAL,
    Register,
    families_of,
    family_mask,
    flags_of,
    lane_mask,
    mask_text,
    parse_mask,
    register_named,
    written_mask,
)

EVERY = [
    Register(family, width, high)
    for family in range(N_FAMILIES)
    for width, high in ((8, False), (8, True), (16, False), (32, False), (64, False))
    if not high or family <= RBX or family >= VIRTUAL
]


@pytest.mark.parametrize("register", EVERY, ids=str)
def test_a_register_is_found_by_its_name(register):
    """Name and register belong to each other, both ways."""
    assert register_named(str(register)) == register


@pytest.mark.parametrize(
    ("name", "lanes"), [("al", 0b0001), ("ah", 0b0010), ("ax", 0b0011), ("eax", 0b0111), ("rax", 0b1111), ("r0b", 0b0001), ("r8d", 0b0111)]
)
def test_a_name_stands_for_its_lanes(name, lanes):
    """Every width names the lanes of its bits."""
    register = register_named(name)
    assert lane_mask(register) == lanes << (N_LANES * register.family)


@pytest.mark.parametrize(("name", "written"), [("eax", "rax"), ("ax", "ax"), ("ah", "ah"), ("al", "al"), ("r9d", "r9")])
def test_a_write_of_32_bits_writes_the_whole_register(name, written):
    """Only a 32-bit write reaches beyond the bits it names."""
    assert written_mask(register_named(name)) == parse_mask(written)


@given(st.integers(0, (1 << (N_LANES * N_FAMILIES)) - 1), st.integers(0, 63))
def test_masks_have_texts(registers, flags):
    """The text of every mask reads back as the mask."""
    mask = registers | sum(bit for i, bit in enumerate(FLAG_BIT.values()) if flags >> i & 1)
    assert parse_mask(mask_text(mask)) == mask


@given(st.sets(st.sampled_from(EVERY)), st.sets(st.sampled_from(FLAGS)))
def test_lists_of_names_are_the_union_of_their_masks(registers, flags):
    """Names may be separated by blanks and commas, in any order and case."""
    text = ", ".join([*(str(r).upper() for r in registers), *(f.lower() for f in flags)])
    expected = 0
    for register in registers:
        expected |= lane_mask(register)
    assert parse_mask(text) == expected | sum(FLAG_BIT[f] for f in flags)
    assert set(families_of(expected)) == {r.family for r in registers}


def test_flags_are_apart_from_registers():
    """No bit is both a lane and a flag, and each flag has one of its own."""
    assert len(set(FLAG_BIT.values())) == len(FLAGS)
    assert not ALL_FLAGS & (ALL_REGISTERS | sum(map(family_mask, range(N_FAMILIES))))
    assert flags_of(ALL_FLAGS | ALL_REGISTERS) == FLAGS


def test_effects_are_apart_from_locations():
    """Memory, accesses, faults and a jump have bits and names of their own."""
    assert len(set(EFFECTS.values())) == len(EFFECTS)
    assert not sum(EFFECTS.values()) & (ALL_FLAGS | sum(map(family_mask, range(N_FAMILIES))))
    assert parse_mask(mask_text(MEMORY | TAKEN | FLAG_BIT["CF"])) == MEMORY | TAKEN | FLAG_BIT["CF"]


@pytest.mark.parametrize("word", ["foo", "rax[7:1]", "xmm0", "r16", "CFF", "rax[31:16"])
def test_a_word_that_names_nothing_is_refused(word):
    """The message shows the word and what is expected."""
    with pytest.raises(ValueError, match="is not a register or flag: expected"):
        parse_mask(f"rax {word}")


@pytest.mark.parametrize("wrong", [(N_FAMILIES, 64), (-1, 64), (0, 7), (0, 64, True), (RSI, 8, True)])
def test_registers_that_do_not_exist_cannot_be_built(wrong):
    """Family, width and the high byte are checked."""
    with pytest.raises(ValueError, match=r"expected|only ah"):
        Register(*wrong)
