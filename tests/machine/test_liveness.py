"""What is live where: over jumps, calls and returns, and that each rule is needed."""

import dataclasses
import shutil
import subprocess

import numpy as np
import pytest
from linked import link

from ruledb.machine import encodings, liveness
from ruledb.machine.blocks import read_program
from ruledb.machine.elf import load
from ruledb.machine.liveness import CALL_READS, EVERYTHING, RETURN_READS, live_out
from ruledb.machine.registers import ALL_FLAGS, ALL_REGISTERS, mask_text, parse_mask

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


def after(program, name, abi="sysv"):
    """What is live behind the instruction at the label *name*."""
    address = next(s.address for s in program.image.symbols if s.name == name)
    return live_out(program, abi).live_after(address)


def has(mask, names):
    """Whether all of *names* are in *mask*, or none; a mixture is an error."""
    wanted = parse_mask(names)
    assert mask & wanted in (0, wanted), mask_text(mask)
    return bool(mask & wanted)


def one(body, rest=""):
    """Code of one function around *body*, and more."""
    return f"function start\n{body}\nend start\n{rest}"


def test_straight_code(tmp_path):
    """What a later instruction overwrites is dead, lane by lane; what it reads is live."""
    program = link(
        tmp_path,
        one("""
        a: mov ecx, 1
        b: mov cl, 2
        c: mov eax, ecx
        d: mov ch, 7
         mov ecx, 5
         add eax, ecx
         ret
        """),
    )
    assert not has(after(program, "a"), "cl")
    assert has(after(program, "a"), "ch")
    assert not has(after(program, "a"), "rcx[63:32]")
    assert has(after(program, "b"), "ecx")
    assert not has(after(program, "c"), "rcx")
    assert not has(after(program, "d"), "CF ZF SF OF")


def test_byte_results_keep_the_rest_of_the_register(tmp_path):
    """A setcc kills its own lane only: the others stay live until the widening read."""
    program = link(tmp_path, one("a: xor eax, eax\nb: cmp edi, esi\n sete al\n ret"))
    assert has(after(program, "a"), "ah rax[31:16] rax[63:32]")
    assert not has(after(program, "a"), "al")
    assert has(after(program, "b"), "ZF")
    assert not has(after(program, "b"), "CF")


def test_flags_live_over_a_conditional_jump(tmp_path):
    """Flags stay live on the path that reads them again, and only those."""
    program = link(
        tmp_path,
        one("""
        a: cmp edi, esi
        b: jl less
         xor eax, eax
         ret
        less: setb al
         ret
        """),
    )
    assert has(after(program, "a"), "SF OF CF")
    assert has(after(program, "b"), "CF")
    assert not has(after(program, "b"), "SF OF ZF")


SHIFT = one("a: cmp edi, esi\n shl edx, cl\n setb al\n ret")


def test_shift_by_cl_leaves_flags(tmp_path):
    """A shift by cl may leave the flags as they were, so they stay live above it."""
    assert has(after(link(tmp_path, SHIFT), "a"), "CF")
    assert not has(after(link(tmp_path, SHIFT.replace("edx, cl", "edx, 3")), "a"), "CF")


def with_effects(monkeypatch, change):
    """Let every decoded instruction have the effects that *change* makes of its own."""
    original = encodings.encoding_of

    def changed(code):
        encoding = original(code)
        return encoding._replace(effects=change(encoding.effects))

    monkeypatch.setattr(encodings, "encoding_of", changed)


def test_taking_writes_for_kills_is_caught(tmp_path, monkeypatch):
    """If what may be written counted as overwritten, the flags above a shift by cl would wrongly be dead."""
    with_effects(monkeypatch, lambda e: dataclasses.replace(e, kills=e.writes))
    assert not has(after(link(tmp_path, SHIFT), "a"), "CF")


def test_taking_partial_writes_for_whole_ones_is_caught(tmp_path, monkeypatch):
    """If a byte write killed its register, the zeroing before a setcc would wrongly be dead."""
    code = one("a: xor eax, eax\n cmp edi, esi\n sete al\n ret")
    assert after(link(tmp_path, code), "a") & parse_mask("eax")
    rax = parse_mask("rax")
    with_effects(monkeypatch, lambda e: dataclasses.replace(e, kills=e.kills | (rax if e.kills & rax else 0)))
    assert not has(after(link(tmp_path, code), "a"), "rax")


def test_returns(tmp_path):
    """A return reads results, callee-saved registers and rsp; not flags, not other registers."""
    program = link(tmp_path, one("a: nop\n ret"))
    assert after(program, "a") == RETURN_READS
    assert after(program, "a", "strict") == EVERYTHING


CALL = one("a: nop\n call leaf\nb: nop\n hlt", "function leaf\n xor eax, eax\n ret\nend leaf")


def test_calls(tmp_path):
    """Before a call its possible arguments are live and flags are not; under "strict" everything is."""
    program = link(tmp_path, CALL)
    assert after(program, "a") & CALL_READS == CALL_READS
    assert not has(after(program, "a"), "CF PF AF ZF SF OF")
    assert after(program, "a", "strict") == EVERYTHING


def test_a_callee_that_reads_more(tmp_path):
    """What a known callee reads is live before the call: flags, or registers outside the convention."""
    program = link(tmp_path, one("a: stc\n call leaf\n mov ebx, 1\n hlt", "function leaf\n sbb eax, ebx\n ret\nend leaf"))
    assert has(after(program, "a"), "CF")
    assert not has(after(program, "a"), "ZF")
    assert has(after(program, "a"), "ebx")


BEHIND = one(
    " call leaf\n jc out\n add r8, rax\n mov rax, r8\nout: ret",
    "function leaf\na: mov r8d, 5\nb: cmp edi, 7\n ret\nend leaf",
)


def test_what_callers_read_behind_a_call(tmp_path):
    """A return hands over what some caller is seen to read behind its call: flags and registers outside the convention."""
    program = link(tmp_path, BEHIND)
    assert has(after(program, "b"), "CF r8")
    assert not has(after(program, "b"), "ZF")
    assert not has(after(program, "b"), "rcx")


def test_ignoring_callers_is_caught(tmp_path, monkeypatch):
    """If returns did not look at callers, what they read would wrongly be dead."""
    monkeypatch.setattr(liveness._Problem, "_called_function", lambda self: np.full(self.n_blocks, -1))
    program = link(tmp_path, BEHIND)
    assert not has(after(program, "b"), "CF r8")


def test_callers_reach_through_tail_calls(tmp_path):
    """A function that is reached by a jump returns to the callers of the one that jumped."""
    program = link(
        tmp_path,
        one(" call first\n adc ebx, 0\n ret", "function first\n jmp second\nend first\nfunction second\na: cmp edi, 1\n ret\nend second"),
    )
    assert has(after(program, "a"), "CF")


def test_tail_calls_pass_arguments(tmp_path):
    """Before a jump to another function what that one reads is live, not all that a call might read."""
    program = link(tmp_path, one("a: mov esi, 1\nb: nop\n jmp next", "function next\n lea eax, [rdi+rsi]\n ret\nend next"))
    assert has(after(program, "b"), "esi edi")
    assert not has(after(program, "b"), "r9")


def test_hot_and_cold_parts(tmp_path):
    """Flags and scratch registers stay live over a jump into the middle of another function's range."""
    program = link(
        tmp_path,
        one(
            """
        a: cmp edi, 5
        b: je cold
         xor eax, eax
         ret
        back: mov eax, r9d
         ret
        """,
            "function outlined\n nop\ncold: adc r9d, 0\n jmp back\nend outlined",
        ),
    )
    assert has(after(program, "b"), "CF r9d")


def test_unknown_jumps_need_everything(tmp_path):
    """Before an indirect jump and a jump to bytes that are no known code everything is live."""
    program = link(tmp_path, one("a: nop\n jmp rax", "function other\nb: nop\n jmp loose\nend other\nloose: ret"))
    assert after(program, "a") == EVERYTHING
    assert after(program, "b") == EVERYTHING


def test_ends_without_a_return(tmp_path):
    """Code that runs off the end of its function needs everything; behind a call at the end there is nothing."""
    program = link(
        tmp_path,
        one("a: call stop", "function stop\n hlt\nend stop\n.byte 0x90\nfunction falls\nb: nop\nend falls\n.byte 0x90"),
    )
    assert after(program, "a") == parse_mask("rsp")
    assert after(program, "b") == EVERYTHING


def test_tail_calls_to_the_outside(tmp_path):
    """Before a jump to a linkage stub arguments and callee-saved registers are live, flags are not."""
    (tmp_path / "p.c").write_text("int puts(const char *);\nint out(const char *s) { return puts(s + 1); }\n")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", tmp_path / "p", tmp_path / "p.c"], check=True)
    program = read_program(load(tmp_path / "p"))
    out = next(s.address for s in program.image.symbols if s.name == "out")
    assert live_out(program).live_after(out) == CALL_READS | RETURN_READS


def test_traps_need_everything(tmp_path):
    """A debugger or handler behind a trap may look at anything."""
    program = link(tmp_path, one("a: nop\n int3\n ret"))
    assert after(program, "a") == EVERYTHING


THUNK = one(
    "a: mov esi, 1\nb: nop\n jmp thunk",
    "function thunk\n call inner\nstop: pause\n jmp stop\ninner: mov [rsp], rax\n ret\nend thunk",
)


def test_return_thunks_are_jumps(tmp_path):
    """A return to an address that the function itself puts on the stack is a jump: arguments pass it."""
    assert has(after(link(tmp_path, THUNK), "b"), "rsi rdi")
    program = link(tmp_path, one("a: nop\n push rax\n ret"))
    assert after(program, "a") == EVERYTHING
    assert after(link(tmp_path, one("a: nop\n push rax\n pop rcx\n ret")), "a") & parse_mask("rsi") == 0


def test_taking_every_return_at_its_word_is_caught(tmp_path, monkeypatch):
    """If a pushed address were taken for the caller's, arguments would wrongly be dead."""
    monkeypatch.setattr(liveness, "returns_elsewhere", lambda *_: np.False_)
    assert not has(after(link(tmp_path, one("a: nop\n push rax\n ret")), "a"), "rsi")


def test_calls_with_landing_pads(tmp_path):
    """Behind a call in a function with landing pads all callee-saved registers are live."""
    body = ".cfi_lsda 0x1b, table\n call leaf\na: mov rbx, rax\n nop\nb: hlt"
    code = one("nop\n hlt", f"function pads\n{body}\nend pads\nfunction leaf\n ret\nend leaf\n.data\ntable: .quad 0\n.text")
    program = link(tmp_path, code)
    call = next(b for b in program.blocks.values() if b.last.instruction.mnemonic == "call")
    assert live_out(program, "sysv").exit[call.start] & RETURN_READS == RETURN_READS


def test_uncertain_callers_need_everything(tmp_path):
    """Behind calls from code that no function holds everything is live at the callee's return."""
    program = link(tmp_path, one("hlt", "loose: call leaf\n adc eax, 0\n ret\nfunction leaf\na: nop\n ret\nend leaf"))
    assert after(program, "a") == EVERYTHING


def test_unknown_conventions_need_everything(tmp_path):
    """With traces of another convention, "auto" assumes nothing about calls and returns."""
    program = link(tmp_path, CALL + '\n.data\n.ascii "GHCRTS"\n')
    assert after(program, "a", "auto") == EVERYTHING
    assert after(program, "a", "sysv") != EVERYTHING
    with pytest.raises(ValueError, match="expected auto, sysv or strict"):
        live_out(program, "fast")


def test_a_caller_that_relies_on_its_callee(tmp_path):
    """A caller-saved register that a caller keeps over a call, since the callee does not touch it, stays live."""
    program = link(tmp_path, one("a: mov r8d, 5\n call leaf\n add eax, r8d\n ret", "function leaf\nb: mov eax, 1\n ret\nend leaf"))
    assert has(after(program, "a"), "r8d")
    assert has(after(program, "b"), "r8d")


@pytest.mark.parametrize("abi", ["sysv", "strict"])
def test_agrees_with_itself(tmp_path, abi):
    """Over a real program the masks satisfy the equations: each is what the next instruction's effects make of the next."""
    (tmp_path / "p.c").write_text(
        "#include <stdio.h>\n#include <stdlib.h>\nstatic int less(const void *a, const void *b) { return *(int *)a - *(int *)b; }\n"
        "int main(int n, char **v) { int x[9]; for (int i = 0; i < 9; i++) x[i] = rand() % (n + i); qsort(x, 9, 4, less);\n"
        'for (int i = 0; i < 9; i++) printf("%d %s\\n", x[i], v[0]); return x[0] > x[8]; }\n'
    )
    subprocess.run(["gcc", "-O2", "-o", tmp_path / "p", tmp_path / "p.c"], check=True)
    program = read_program(load(tmp_path / "p"))
    found = live_out(program, abi)
    for block in program.blocks.values():
        masks = found.after(block)
        assert len(masks) == len(block.instructions)
        for instruction, mask, following in zip(block.instructions[1:], masks[1:], masks, strict=False):
            if instruction is not block.last:
                assert following == liveness.before(instruction, mask)
        assert all(mask & ~(ALL_REGISTERS | ALL_FLAGS) == 0 for mask in masks)
        for successor in block.successors:
            if successor in program.blocks:
                assert found.entry[successor] & ~found.exit[block.start] == 0
        assert [found.live_after(d.address) for d in block.instructions] == list(masks)
    assert found.live_after(0) == EVERYTHING
