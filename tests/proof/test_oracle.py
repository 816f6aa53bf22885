"""The oracle: states through, faults raised, code never stale."""

import numpy as np
import pytest

from ruledb.machine.registers import FLAGS
from ruledb.proof.oracle import N_COLUMNS, RFLAGS, STATUS_BITS, STATUS_MASK, Oracle, OracleFault, flag_column, rflags_column

_ADD_EAX = b"\x05"  # add eax, imm32


@pytest.fixture(scope="module")
def oracle():
    """One emulator for the module."""
    return Oracle()


def _states(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 64, (n, N_COLUMNS), dtype=np.uint64)


@pytest.mark.parametrize("way", ["run", "run_table"])
def test_empty_code_returns_the_states(oracle, way):
    """No code changes nothing, except that rflags keep only the status flags."""
    states = _states(50)
    expected = states.copy()
    expected[:, RFLAGS] &= np.uint64(STATUS_MASK)
    assert np.array_equal(getattr(oracle, way)(b"", states), expected)


@pytest.mark.parametrize("way", ["run", "run_table"])
def test_every_register_is_a_plain_column(oracle, way):
    """Writing one register changes its column alone, rsp included, and the argument stays as it was."""
    states = _states(20, seed=1)
    before = states.copy()
    for family in range(15):
        code = bytes((0x48 | family >> 3, 0xC7, 0xC0 | family & 7)) + (0x1234).to_bytes(4, "little")  # mov r64, 0x1234
        expected = states.copy()
        expected[:, family] = 0x1234
        expected[:, RFLAGS] &= np.uint64(STATUS_MASK)
        assert np.array_equal(getattr(oracle, way)(code, states), expected)
    assert np.array_equal(states, before)


@pytest.mark.parametrize("way", ["run", "run_table"])
def test_flags_go_in_and_out(oracle, way):
    """A carry that goes in is added by adc, and the flags of the sum come out."""
    states = np.zeros((2, N_COLUMNS), dtype=np.uint64)
    states[:, 0], states[:, RFLAGS] = (1 << 64) - 1, (0, 1)
    after = getattr(oracle, way)(bytes.fromhex("4883d000"), states)  # adc rax, 0
    assert after[:, 0].tolist() == [(1 << 64) - 1, 0]
    assert {name: flag_column(after, name).tolist() for name in FLAGS} == {
        "CF": [0, 1], "PF": [1, 1], "AF": [0, 1], "ZF": [0, 1], "SF": [1, 0], "OF": [0, 0],
    }  # fmt: skip


def test_flag_columns_pack_and_unpack():
    """Packing flags into rflags and reading them back is the identity."""
    values = {name: np.arange(4, dtype=np.uint64) >> np.uint64(i % 2) & np.uint64(1) for i, name in enumerate(FLAGS)}
    states = np.zeros((4, N_COLUMNS), dtype=np.uint64)
    states[:, RFLAGS] = rflags_column(values, 4)
    assert all(np.array_equal(flag_column(states, name), values[name]) for name in FLAGS)
    assert sorted(STATUS_BITS.values()) == [0, 2, 4, 6, 7, 11]


def test_system_flags_are_ignored(oracle):
    """Trap, direction and other flags of a state neither stop the run nor come out."""
    states = np.full((3, N_COLUMNS), (1 << 64) - 1, dtype=np.uint64)
    for way in (oracle.run, oracle.run_table):
        assert way(b"\x90", states)[:, RFLAGS].tolist() == [STATUS_MASK] * 3


def test_table_and_single_runs_agree(oracle):
    """Looping over a table in the emulator gives what one run per state gives, over more rows than one table holds."""
    states = _states(70_000, seed=2)
    code = bytes.fromhex("4811d8 480fafc8 0f9cc7 d3c2")  # adc rax, rbx; imul rcx, rax; setl bh; rol edx, cl
    table = oracle.run_table(code, states)
    sample = np.arange(0, len(states), 701)
    assert np.array_equal(oracle.run(code, states[sample]), table[sample])


@pytest.mark.parametrize("pointer", [8, 9, 10, 11, 14, 15])
def test_pointer_register_passes_through(oracle, pointer):
    """Whichever register walks the table, its own column comes out as it went in."""
    states = _states(10, seed=3)
    assert np.array_equal(oracle.run_table(b"\xff\xc0", states, pointer), oracle.run(b"\xff\xc0", states))


def test_pointer_misuse_is_refused(oracle):
    """A pointer that cannot walk the table, or that the code changes, is an error."""
    with pytest.raises(ValueError, match="pointer family 4"):
        oracle.run_table(b"\x90", _states(1), 4)
    with pytest.raises(OracleFault, match="changed the pointer"):
        oracle.run_table(bytes.fromhex("4983c701"), _states(1))  # add r15, 1


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("0f0b", "INSN_INVALID"),
        ("488b00", "READ_UNMAPPED"),
        ("488900", "WRITE_UNMAPPED"),
        ("cc", "EXCEPTION"),
        ("f4", "left the code"),
        ("e900100000", "EXCEPTION"),
    ],
)
@pytest.mark.parametrize("way", ["run", "run_table"])
def test_faults_are_raised(oracle, way, code, reason):
    """Invalid code, unmapped memory, traps, halts and jumps out of the code raise, and the oracle works on."""
    states = np.full((1, N_COLUMNS), 0x123456789000, dtype=np.uint64)
    padded = bytes.fromhex(code) + b"\x90"
    with pytest.raises(OracleFault, match=reason):
        getattr(oracle, way)(padded, states)
    assert oracle.run(b"\xff\xc0", states)[0, 0] == 0x56789001


def test_wrong_shapes_are_refused(oracle):
    """States of another shape or type are an error that names both."""
    with pytest.raises(ValueError, match=r"expected \(n, 17\) of uint64"):
        oracle.run(b"\x90", np.zeros((1, 16), dtype=np.uint64))
    with pytest.raises(ValueError, match="int64"):
        oracle.run(b"\x90", np.zeros((1, N_COLUMNS), dtype=np.int64))
    with pytest.raises(OracleFault, match="at most"):
        oracle.run(b"\x90" * (1 << 20), _states(1))


def test_code_is_never_stale(oracle):
    """Codes of several blocks, more than there are fresh addresses, each give their own result."""
    state = np.zeros((1, N_COLUMNS), dtype=np.uint64)
    n = 50_000
    # add eax, i; jc +5 (not taken); add eax, 1
    codes = [_ADD_EAX + i.to_bytes(4, "little") + bytes.fromhex("7205 0501000000") for i in range(n)]
    results = oracle.run_many(codes, state)
    assert results.shape == (n, 1, N_COLUMNS)
    assert np.array_equal(results[:, 0, 0], np.arange(1, n + 1, dtype=np.uint64))


def test_tables_are_never_stale(oracle):
    """Codes run by table, more than there are fresh addresses, each give their own result."""
    state = np.zeros((2, N_COLUMNS), dtype=np.uint64)
    for i in range(6_000):
        assert oracle.run_table(_ADD_EAX + i.to_bytes(4, "little"), state)[1, 0] == i


def test_two_oracles_are_independent():
    """Oracles do not share code or state."""
    first, second = Oracle(), Oracle()
    state = np.zeros((1, N_COLUMNS), dtype=np.uint64)
    assert [o.run(_ADD_EAX + bytes((i, 0, 0, 0)), state)[0, 0] for i, o in enumerate((first, second, first, second))] == [0, 1, 2, 3]
