"""The array code of liveness gives what plain loops give."""

import shutil
import subprocess
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_liveness import Reference

from ruledb.machine import flowgraph
from ruledb.machine.blocks import read_program
from ruledb.machine.elf import load
from ruledb.machine.flowgraph import Values, edges_from, solve
from ruledb.machine.liveness import live_out
from ruledb.machine.registers import RSP, family_mask

_STACK = family_mask(RSP)
_CORPUS = Path(__file__).resolve().parents[2] / "corpora" / "bin"

_PLAIN = (
    "mov eax, ecx", "add r9, rbx", "mov cl, 2", "mov ch, 3", "sete al", "adc esi, 0", "shl edx, cl", "shl edx, 3", "xor r8d, r8d",
    "cmp rdi, r11", "mov [rsp+8], rax", "mov [rsp], rdx", "push rbp", "pop rbx", "mov rsp, rbp", "mov rsp, rax", "imul ebx, r12d", "bsf rax, rdi",
    "cmovb r10d, r13d", "nop", "cqo", "mul r14", "movaps xmm0, xmm1", "setp r15b", "rep movsb", "syscall", "lea rdx, [rip+f0]",
)  # fmt: skip


_DISPATCH = "lea rdx, t{f}[rip]\n movsxd rax, dword ptr [rdx+rdi*4]\n add rax, rdx\n jmp rax"


def random_code(random):
    """Functions of random instructions that jump, call, return and fall to one another."""
    functions = random.randrange(2, 9)
    labels = [f"l{f}_{i}" for f in range(functions) for i in range(4)]
    lines = [".intel_syntax noprefix", ".text", ".globl start", "start: jmp f0"]
    for f in range(functions):
        lines += [f".type f{f}, @function", f"f{f}: .cfi_startproc"]
        for i in range(4):
            lines.append(f"l{f}_{i}:")
            lines += random.choices(_PLAIN, k=random.randrange(6))
            target, callee = random.choice([*labels, f"f{random.randrange(functions)}"]), f"f{random.randrange(functions)}"
            lines.append(
                random.choice(
                    [
                        "",
                        f"jc {target}",
                        f"jle {target}",
                        f"jmp {target}",
                        f"call {callee}",
                        f"call {target}",
                        "call rax",
                        "ret",
                        "hlt",
                        _DISPATCH.format(f=f),
                    ]
                )
            )
        lines += [random.choice(["ret", f"jmp {callee}", "nop", "jmp rdx"]), ".cfi_endproc", f".size f{f}, .-f{f}"]
    lines.append('.section .rodata,"a"')
    for f in range(functions):
        entries = [*random.choices(labels, k=random.randrange(4)), f"l{f}_2"]
        lines += [f"t{f}: .long {', '.join(f'{label}-t{f}' for label in entries)}", ".long 1"]
    lines.append(".text")
    lines += [random.choice(["", "loose: call f0\n jmp l1_1"]), '.section .note.GNU-stack,""']
    return "\n".join(lines) + "\n"


def require_equal(program, abi):
    """Every mask of the array code is that of the plain loops, but that rsp is always live."""
    found, expected = live_out(program, abi), Reference(program, abi == "sysv").solve()
    for start, block in program.blocks.items():
        entry, after = expected[start]
        assert found.entry[start] == entry, hex(start)
        assert list(found.after(block)) == after, hex(start)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
@pytest.mark.parametrize("seed", range(40))
def test_random_programs_have_the_liveness_of_plain_loops(tmp_path, seed):
    """On random flow graphs, array code and plain loops agree at every instruction, under each convention."""
    (tmp_path / "a.s").write_text(random_code(Random(seed)))
    subprocess.run(["gcc", "-nostdlib", "-Wl,-e,start", "-o", tmp_path / "a", tmp_path / "a.s"], check=True)
    program = read_program(load(tmp_path / "a"))
    for abi in ("sysv", "strict"):
        require_equal(program, abi)


@pytest.mark.parametrize("name", ["vm-O0", "sorting-O2", "dynamic-O1", "machine-clang", "bcd-O3"])
def test_compiled_programs_have_the_liveness_of_plain_loops(name):
    """On compilers' output, too, array code and plain loops agree at every instruction."""
    require_equal(read_program(load(_CORPUS / name)), "sysv")


_MASK = st.integers(0, 7)


_NODE = st.integers(0, 5)


@given(st.lists(st.tuples(_NODE, _NODE, st.booleans(), _MASK), max_size=20), *[st.lists(_MASK, min_size=6, max_size=6)] * 2)
@pytest.mark.parametrize("chunk", [2, 100])
def test_the_solution_is_the_least_one(chunk, edges, initial, through):
    """What flows along masked edges is what repeating every edge until nothing changes gives, however nodes are put together."""
    columns = list(zip(*edges, strict=True)) or [()] * 4
    sources, destinations, _, flags = (np.array(c, t) for c, t in zip(columns, (np.int64, np.int64, bool, np.uint8), strict=True))
    parts = [(np.array(columns[2], bool) == has, sources, destinations, has, flags) for has in (False, True)]
    values = Values(np.array(initial, np.uint64), np.array(initial, np.uint64), np.array(initial, np.uint8))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flowgraph, "_CHUNK", chunk)
        solve(values, np.array(through, np.uint64), edges_from(6, parts))
    for part in range(3):
        expected = list(initial)
        for _ in range(40):
            for source, destination, has_assumed, let in edges:
                mask = (through[destination], through[destination] if has_assumed else 0, let)[part]
                expected[destination] |= expected[source] & mask
        assert values[part].tolist() == expected
