"""Terms and emulator agree on every form, wherever the manual defines the outcome."""

import random

import numpy as np
import pytest
from conformance import N_RANDOM, WRONG_IN_THE_EMULATOR, compare, compare_sequence, edge_values, place, random_states, states_of
from form_list import WIDTHS, WORDS, Case, assemble, cases, memory_cases, shape

from ruledb.machine.instruction import Mem, parse_instruction
from ruledb.machine.registers import Register
from ruledb.proof.oracle import Oracle
from ruledb.semantics.forms import FORMS

_VARIANT_RANDOM = 1_000
"""Random states of a case whose mnemonic, operand kinds and widths an earlier case has."""


@pytest.fixture(scope="module")
def oracle():
    """One emulator for the module."""
    return Oracle()


REGISTER_MNEMONICS = sorted({c.instruction.mnemonic for c in cases()})


@pytest.mark.parametrize("mnemonic", REGISTER_MNEMONICS)
def test_terms_equal_the_emulator(oracle, mnemonic):
    """Every form agrees on all pairs of bytes, all pairs of edge values at other widths, and 2,000 random states."""
    seen, found = set(), []
    for case in cases():
        if case.instruction.mnemonic == mnemonic:
            n_random = _VARIANT_RANDOM if shape(case) in seen else N_RANDOM
            seen.add(shape(case))
            found += compare(oracle, case, states_of(case, n_random))
    assert seen
    assert found == []


def test_sequences_equal_the_emulator(oracle):
    """Composed terms of two to four instructions agree with the emulator on locations free of undefined values."""
    generator = random.Random(5)
    plain = [c for c in cases() if c.instruction.mnemonic not in ("bsf", "bsr", *WRONG_IN_THE_EMULATOR)]
    states = random_states(200, seed=6)
    for register in (Register(f, 64) for f in range(15)):
        place(states[:100], register, np.array(generator.choices(edge_values(64), k=100), dtype=np.uint64))
    found = []
    for _ in range(500):
        sequence = generator.sample(plain, generator.randint(2, 4))
        found += compare_sequence(oracle, "; ".join(c.text for c in sequence), sequence, states)
    assert found == []


def test_single_runs_equal_the_emulator(oracle):
    """The terms agree with states run one at a time as they do with the table of states."""
    sample = random.Random(7).sample(cases(), 200)
    assert [m for c in sample for m in compare(oracle, c, random_states(50), use_table=False)] == []


@pytest.mark.parametrize("mnemonic", WRONG_IN_THE_EMULATOR)
def test_what_is_left_out_is_what_the_emulator_gets_wrong(oracle, monkeypatch, mnemonic):
    """Each exception that the comparison makes is one: without it, the emulator differs."""
    monkeypatch.setitem(WRONG_IN_THE_EMULATOR, mnemonic, "")
    chosen = [c for c in cases() if c.instruction.mnemonic == mnemonic]
    assert any(compare(oracle, c, states_of(c, 100)) for c in chosen)


def test_every_form_is_covered():
    """The list of cases has each mnemonic of the table at each of its widths."""
    covered = {(c.instruction.mnemonic, shape(c)) for c in (*cases(), *memory_cases())}
    for mnemonic, forms in FORMS.items():
        assert len({s for m, s in covered if m == mnemonic}) >= sum(len(f.widths) for f in forms if f.explicit), mnemonic
    assert all(not isinstance(o, Mem) or c.instruction.mnemonic in ("lea", "nop") for c in cases() for o in c.instruction.operands)
    for mnemonic, forms in FORMS.items():
        takes = {(k, w) for f in forms for slot in f.slots for k in slot.kinds if k[0] == "m" and k != "mem" for w in f.widths}
        widths = {
            o.width for c in memory_cases() if c.instruction.mnemonic == mnemonic for o in c.instruction.operands if isinstance(o, Mem)
        }
        assert widths >= {int(k[1:] or w) for k, w in takes}, mnemonic


@pytest.mark.oracle
@pytest.mark.parametrize("mnemonic", REGISTER_MNEMONICS)
def test_all_variants_equal_the_emulator_on_many_states(oracle, mnemonic):
    """Every variant of every form agrees on 20,000 other random states."""
    chosen = [c for c in cases() if c.instruction.mnemonic == mnemonic]
    assert [m for c in chosen for m in compare(oracle, c, np.concatenate([states_of(c, 0), random_states(20_000, seed=8)]))] == []


def _every_immediate() -> list[str]:
    texts = [
        f"{m} {r}, {i}"
        for m in ("add", "adc", "sub", "sbb", "cmp", "and", "or", "xor", "test", "mov")
        for r in ("al", "bh")
        for i in range(-128, 128)
    ]
    for mnemonic in ("shl", "shr", "sar", "rol", "ror"):
        texts += [f"{mnemonic} {Register(3, w)}, {i}" for w in WIDTHS for i in range(256)]
    for mnemonic in ("bt", "bts", "btr", "btc"):
        texts += [f"{mnemonic} {Register(3, w)}, {i}" for w in WORDS for i in range(256)]
    return texts + [f"{m} {Register(3, w)}, {Register(0, w)}, {i}" for m in ("shld", "shrd") for w in WORDS for i in range(256)]


@pytest.mark.oracle
def test_every_8_bit_immediate_equals_the_emulator(oracle):
    """All 256 immediates agree with all 256 values at 8 bits, and all 256 counts and bit offsets with the edge values."""
    texts = _every_immediate()
    found = []
    for text, code in zip(texts, assemble(texts), strict=True):
        instruction = parse_instruction(text)
        case = Case(text, instruction, code, tuple(dict.fromkeys(o for o in instruction.operands if isinstance(o, Register))))
        found += compare(oracle, case, states_of(case, 100))
    assert found == []


@pytest.mark.oracle
@pytest.mark.parametrize(
    "mnemonic", ["inc", "dec", "neg", "not", "shl", "shr", "sar", "rol", "ror", "bsf", "bsr", "movzx", "movsx", "cbw", "cwde", "cwd"]
)
def test_one_input_is_exhaustive_at_16_bits(oracle, mnemonic):
    """Forms of one 16-bit input agree on all 65,536 values."""
    for case in cases():
        if case.instruction.mnemonic == mnemonic and case.inputs and case.inputs[-1].width == 16:
            states = random_states(1 << 16, seed=9)
            place(states, case.inputs[-1], np.arange(1 << 16, dtype=np.uint64))
            assert compare(oracle, case, states) == []
