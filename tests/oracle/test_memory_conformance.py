"""Terms and emulator agree on every form that accesses memory, traps or jumps."""

import pytest
from form_list import memory_cases
from memory_conformance import compare_in_memory, states_in_memory

from ruledb.proof.oracle import Oracle

MNEMONICS = sorted({c.instruction.mnemonic for c in memory_cases()})


@pytest.fixture(scope="module")
def oracle():
    """One emulator for the module."""
    return Oracle()


@pytest.mark.parametrize("mnemonic", MNEMONICS)
def test_terms_equal_the_emulator_in_memory(oracle, mnemonic):
    """Registers, flags, traps, jumps, bytes of memory, and the accesses in order agree, also across pages and for overlapping pointers."""
    chosen = [c for c in memory_cases() if c.instruction.mnemonic == mnemonic]
    assert [d for c in chosen for d in compare_in_memory(oracle, c, states_in_memory(c, 24))] == []


@pytest.mark.oracle
@pytest.mark.parametrize("mnemonic", MNEMONICS)
def test_terms_equal_the_emulator_in_memory_on_many_states(oracle, mnemonic):
    """The same on 2,000 other states a form."""
    chosen = [c for c in memory_cases() if c.instruction.mnemonic == mnemonic]
    assert [d for c in chosen for d in compare_in_memory(oracle, c, states_in_memory(c, 2_000, seed=5))] == []
