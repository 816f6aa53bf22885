"""The oracle: states through, faults raised, code never stale."""

import numpy as np
import pytest

from ruledb.machine.registers import FLAGS
from ruledb.proof.oracle import N_COLUMNS, PAGE_BYTES, RFLAGS, STATUS_BITS, STATUS_MASK, Oracle, OracleFault, flag_column, rflags_column

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


_SLOT = 0x200000000FFC
"""Four bytes before the end of a page."""


def _mixed(page: int) -> bytes:
    return bytes((page + i) % 256 for i in range(PAGE_BYTES))


def _row(**registers: int) -> np.ndarray:
    row = np.zeros(N_COLUMNS, dtype=np.uint64)
    for name, value in registers.items():
        row[("rax", "rcx", "rdx", "rbx", "rsp").index(name)] = value
    return row


def test_a_run_in_memory_reads_what_the_caller_says(oracle):
    """A load across pages has the bytes of both, lowest first, and leaves them as they were."""
    run = oracle.run_in_memory(bytes.fromhex("488b03"), _row(rbx=_SLOT), _mixed)  # mov rax, [rbx]
    wanted = _mixed(_SLOT >> 12)[-4:] + _mixed((_SLOT >> 12) + 1)[:4]
    assert int(run.state[0]) == int.from_bytes(wanted, "little")
    assert run.pages == {p: _mixed(p) for p in (_SLOT >> 12, (_SLOT >> 12) + 1)}
    assert run.accesses == [(False, _SLOT, 8, 0)]
    assert (run.is_taken, run.fault) == (False, "")


def test_a_run_in_memory_brings_stores_back(oracle):
    """Stored bytes and the accesses in order come back; the next run starts from the caller's memory again."""
    for _ in range(2):
        run = oracle.run_in_memory(bytes.fromhex("50 010b"), _row(rax=0x1122334455667788, rbx=_SLOT, rcx=5, rsp=0x210000000800), _mixed)
        old = int.from_bytes(_mixed(_SLOT >> 12)[-4:], "little")
        assert run.accesses == [
            (True, 0x2100000007F8, 8, 0x1122334455667788),
            (False, _SLOT, 4, 0),
            (True, _SLOT, 4, (old + 5) & 0xFFFFFFFF),
        ]
        assert run.pages[0x210000000][0x7F8:0x800] == (0x1122334455667788).to_bytes(8, "little")
        assert int(run.state[4]) == 0x2100000007F8


def test_a_page_that_does_not_exist_faults(oracle):
    """With only some pages an access to another one is a fault, across a page's end too; without memory every access is one."""
    code = bytes.fromhex("488b03")
    first = {_SLOT >> 12}
    assert "READ_UNMAPPED" in oracle.run_in_memory(code, _row(rbx=_SLOT), _mixed, first).fault
    assert not oracle.run_in_memory(code, _row(rbx=_SLOT - 4), _mixed, first).fault
    assert "READ_UNMAPPED" in oracle.run_in_memory(code, _row(rbx=1 << 48), _mixed).fault
    with pytest.raises(OracleFault, match="READ_UNMAPPED"):
        oracle.run(code, _row(rbx=_SLOT)[None])


@pytest.mark.parametrize(("eax", "taken"), [(0, False), (1, True)])
def test_a_closing_jump_is_seen(oracle, eax, taken):
    """A jump that goes behind the end of the code is taken or not, and neither is a fault."""
    run = oracle.run_in_memory(bytes.fromhex("85c0 7501"), _row(rax=eax), _mixed)  # test eax, eax; jne
    assert (run.is_taken, run.fault) == (taken, "")


def test_a_division_that_traps_is_a_fault(oracle):
    """Dividing by zero ends the run with a fault, and the oracle works on."""
    code = bytes.fromhex("f7f1")  # div ecx
    assert "EXCEPTION" in oracle.run_in_memory(code, _row(), _mixed).fault
    assert int(oracle.run_in_memory(code, _row(rax=7, rcx=2), _mixed).state[0]) == 3
