"""The two engines run what they are given, report faults by row, and agree on memory."""

import numpy as np
import pytest
from conformance import random_states
from engines import Emulator, native_reason, processor
from form_list import assemble
from program import BORDER, PAGE_BYTES, WINDOW_BYTES, code_address

from ruledb.machine.registers import FLAGS
from ruledb.proof.oracle import RFLAGS, STATUS_BITS, STATUS_MASK, OracleFault

_RAX, _RCX, _RBX, _RSP, _RSI, _RDI = 0, 1, 3, 4, 6, 7
_NATIVE = pytest.mark.skipif(bool(native_reason()), reason=native_reason() or "runs here")


@pytest.fixture(params=["emulator", pytest.param("processor", marks=_NATIVE)])
def engine(request):
    """Each engine in turn."""
    return processor() if request.param == "processor" else Emulator()


def _code(text: str) -> bytes:
    return assemble([text])[0]


def _memory(n: int, seed: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (n, WINDOW_BYTES), dtype=np.uint8)


def test_nothing_changes_nothing(engine):
    """Without code all sixteen registers, the status flags and the window come back as they went in."""
    states, memory = random_states(500), _memory(500)
    outcome = engine.run(b"", states, memory)
    states[:, RFLAGS] &= np.uint64(STATUS_MASK)
    assert (outcome.states == states).all()
    assert (outcome.memory == memory).all()
    assert outcome.faults == {}


def test_every_row_is_run(engine):
    """A table longer than one filling of the engine's area is run to its end, each row from its own state."""
    states = random_states(300_000)
    assert (engine.run_table(_code("lea r15, [rsp+rbp]"), states)[:, 15] == states[:, 4] + states[:, 5]).all()


def test_a_fault_names_its_row_and_spares_the_others(engine):
    """A division by 0 is reported as #DE in its rows, and the rows around it are divided."""
    states = random_states(50)
    states[:, [_RCX, 2]] = 7, 0
    states[10:12, _RCX] = states[49, _RCX] = 0
    outcome = engine.run(_code("div rcx"), states)
    assert outcome.faults == dict.fromkeys((10, 11, 49), "#DE")
    rows = [i for i in range(50) if i not in outcome.faults]
    assert (outcome.states[rows, _RAX] == states[rows, _RAX] // np.uint64(7)).all()
    with pytest.raises(OracleFault, match="#DE in row 10"):
        engine.run_table(_code("div rcx"), states)


@pytest.mark.parametrize(("text", "name"), [("ud2", "#UD|INSN_INVALID"), ("mov eax, [0x40000000]", "PF|READ_UNMAPPED")])
def test_other_faults_are_named(engine, text, name):
    """Invalid instructions and accesses to what is not mapped are told apart."""
    faults = engine.run(_code(text), random_states(2)).faults
    assert list(faults) == [0, 1]
    assert any(part in faults[0] for part in name.split("|"))


def test_a_store_beside_the_window_is_no_result(engine):
    """A store that the window does not hold is an error, and does not spoil the next run."""
    states = random_states(3)
    states[:, _RBX] = BORDER - WINDOW_BYTES
    with pytest.raises(OracleFault, match="outside the window"):
        engine.run(_code("mov [rbx], rax"), states, _memory(3))
    states[:, _RBX] = BORDER
    assert engine.run(_code("mov [rbx], rax"), states, _memory(3)).faults == {}


def test_the_code_has_a_fixed_address(engine):
    """A rip-relative operand reaches the window."""
    code = bytes.fromhex("488b05") + (BORDER - code_address(has_memory=True) - 7).to_bytes(4, "little", signed=True)  # mov rax, [rip+d]
    memory = _memory(20)
    after = engine.run(code, random_states(20), memory).states
    assert (after[:, _RAX] == memory[:, 64:72].copy().view(np.uint64)[:, 0]).all()


def test_states_of_another_shape_are_refused(engine):
    """Arrays of another shape or type are told from states."""
    with pytest.raises(ValueError, match="expected \\(n, 17\\) of uint64"):
        engine.run(b"", np.zeros((2, 16), dtype=np.uint64))
    with pytest.raises(ValueError, match="of uint8"):
        engine.run(b"", random_states(2), np.zeros((2, 7), dtype=np.uint8))


def pointer_states(n: int, seed: int = 9) -> np.ndarray:
    """
    States whose rbx, rsi, rdi and rsp point into the window.

    rsi and rdi lie 0 to 8 bytes apart, so that they are equal, overlap in part, or just touch; every eighth access crosses the
    page's border by 1 to 7 bytes.
    """
    states, draw = random_states(n, seed), np.random.default_rng(seed)
    near = BORDER + draw.integers(-24, 24, n)
    near = np.where(np.arange(n) % 8 == 0, BORDER - draw.integers(1, 8, n), near).astype(np.uint64)
    states[:, _RBX] = near
    states[:, _RSI] = near
    states[:, _RDI] = near + draw.integers(-8, 9, n).astype(np.uint64)
    states[:, _RSP] = BORDER + draw.integers(-24, 24, n).astype(np.uint64)
    return states


_PTR = {8: "byte ptr", 16: "word ptr", 32: "dword ptr", 64: "qword ptr"}
_NAMES = {8: ("al", "cl"), 16: ("ax", "cx"), 32: ("eax", "ecx"), 64: ("rax", "rcx")}


def memory_texts() -> list[str]:
    """Loads, stores, read-modify-writes, the stack, exchanges, and pairs of accesses that may overlap."""
    texts = []
    for width, (a, c) in _NAMES.items():
        m = f"{_PTR[width]} [rbx]"
        texts += [f"{op} {left}" for op in ("mov", "add", "adc", "sub", "sbb", "cmp") for left in (f"{m}, {a}", f"{c}, {m}", f"{m}, 5")]
        texts += [f"{op} {m}" for op in ("inc", "dec", "neg", "not")]
        texts += [f"xchg {m}, {a}", f"xadd {m}, {a}", f"cmpxchg {m}, {c}"]
        texts += [f"mov [rsi], {a}; mov {c}, [rdi]", f"mov {a}, [rsi]; mov [rdi], {a}; add {c}, [rsi]"]
        texts += [f"mov [rsi], {a}; mov [rdi], {c}", f"add [rsi], {a}; add [rdi], {c}; mov {a}, [rbx]"]
    texts += ["push rax", "push rsp", "pop rcx", "pop rsp", "pop qword ptr [rsp]", "push qword ptr [rsp+8]", "pop qword ptr [rbx]"]
    return [
        *texts,
        "push ax",
        "pop cx",
        "push -3",
        "push rax; pop rcx; mov rdx, [rsp-8]",
        "mov rbp, rbx; leave",
        "movs qword ptr [rdi], [rsi]",
    ]


@_NATIVE
def test_the_emulator_equals_the_processor_on_memory():
    """Registers, flags and the window are the same after every access, aliased, overlapping or across the page's border."""
    states, memory, emulator, found = pointer_states(2_000), _memory(2_000), Emulator(), []
    for text, code in zip(memory_texts(), assemble(memory_texts()), strict=True):
        ours, theirs = emulator.run(code, states, memory), processor().run(code, states, memory)
        same = (ours.states == theirs.states).all() and (ours.memory == theirs.memory).all()
        found += [] if same and ours.faults == theirs.faults == {} else [text]
    assert found == []


def test_pointers_alias_overlap_and_cross():
    """The states of the memory comparison hold equal addresses, each overlap of 1 to 7 bytes, and accesses across the border."""
    states = pointer_states(2_000)
    distances = np.abs((states[:, _RSI] - states[:, _RDI]).view(np.int64))
    assert set(distances.tolist()) == set(range(9))
    crossing = BORDER - states[:, _RBX].astype(np.int64)
    assert set(range(1, 8)) <= set(crossing.tolist())
    assert BORDER % PAGE_BYTES == 0
    assert len(STATUS_BITS) == len(FLAGS)
