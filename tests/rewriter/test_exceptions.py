"""Programs that throw: handlers find what they need."""

import shutil
import subprocess

import numpy as np
import pytest
from sample_rules import RULES, rule

from rewriter.driver import rewrite
from ruledb.machine import blocks, entries, liveness
from ruledb.machine.elf import load

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

DELETE = rule("mov r0d, c0", "", "CF PF AF ZF SF OF")
"""Where nothing reads a register, setting it is of no use."""

THROWS = """
    .intel_syntax noprefix
    .globl main, thrower
thrower:
    .cfi_startproc
    sub rsp, 8
    .cfi_adjust_cfa_offset 8
    mov edi, 4
    call __cxa_allocate_exception@PLT
    mov dword ptr [rax], 5
    mov rdi, rax
    lea rsi, _ZTIi[rip]
    xor edx, edx
    call __cxa_throw@PLT
    .cfi_endproc
handler:
    .cfi_startproc
    .cfi_personality 0x9b, DW.ref.__gxx_personality_v0
    .cfi_lsda 0x1b, area
    push rbx
    .cfi_adjust_cfa_offset 8
    .cfi_offset rbx, -16
    mov ebx, 41
    {before}
tried:
    {faulting}
    call thrower
past:
    xor ebx, ebx
    xor eax, eax
    pop rbx
    .cfi_remember_state
    .cfi_adjust_cfa_offset -8
    ret
pad:
    .cfi_restore_state
    mov rdi, rax
    {after}
    call __cxa_begin_catch@PLT
    call __cxa_end_catch@PLT
    mov eax, ebx
    pop rbx
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
main:
    .cfi_startproc
    sub rsp, 8
    .cfi_adjust_cfa_offset 8
    call handler
    add rsp, 8
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .section .gcc_except_table, "a", @progbits
    .balign 4
area: .byte 0xff, 0x9b
    .uleb128 types - first
first: .byte 1
    .uleb128 last - sites
sites: .uleb128 tried - handler
    .uleb128 past - tried
    .uleb128 pad - handler
    .uleb128 1
last: .byte 1, 0
    .balign 4
    .long 0
types:
    .hidden DW.ref.__gxx_personality_v0
    .weak DW.ref.__gxx_personality_v0
    .section .data.rel.local.DW.ref.__gxx_personality_v0, "awG", @progbits, DW.ref.__gxx_personality_v0, comdat
    .balign 8
    .type DW.ref.__gxx_personality_v0, @object
    .size DW.ref.__gxx_personality_v0, 8
DW.ref.__gxx_personality_v0: .quad __gxx_personality_v0
    .section .note.GNU-stack, "", @progbits
"""


@pytest.fixture
def built(tmp_path):
    """g++: name of the source file, its text and options → path of the program."""

    def compiled(name, source, *options):
        (tmp_path / name).write_text(source)
        subprocess.run(["g++", *options, "-o", tmp_path / "program", tmp_path / name], check=True, capture_output=True)
        return tmp_path / "program"

    return compiled


def throwing(built, before="", faulting="", after=""):
    """The program of `THROWS`, with more instructions at three places of its handling function."""
    return built("p.s", THROWS.format(before=before, faulting=faulting, after=after))


def ends_with(data, folder, run):
    """The exit code of the program *data*."""
    path = folder / "p"
    path.write_bytes(data)
    path.chmod(0o755)
    return run(path)[0]


def test_a_register_that_only_a_handler_reads_stays(built, run, tmp_path):
    """What a landing pad reads is live at the calls that may throw; the function itself is no longer left alone."""
    path = throwing(built)
    result = rewrite(path.read_bytes(), [DELETE])
    assert result.opaque.get("lsda", 0) == 0
    assert run(path)[0] == ends_with(result.data, tmp_path, run) == 41


def test_forgetting_handlers_is_caught(built, run, tmp_path, monkeypatch):
    """If calls did not hold what landing pads read, the program above would be broken."""
    path = throwing(built)
    monkeypatch.setattr(liveness, "RETURN_READS", 0)
    assert ends_with(rewrite(path.read_bytes(), [DELETE]).data, tmp_path, run) != 41


def test_a_landing_pad_is_an_entry(built, monkeypatch):
    """A block starts at a pad though no code leads there; where pads are not known, none does."""
    path = throwing(built)
    image = load(path)
    program = blocks.read_program(image)
    pad = next(s.address for s in image.symbols if s.name == "pad")
    assert pad in program.blocks
    assert pad in {site.pad for site in entries.find_entries(image, program.functions, program.listing).sites}


def test_where_a_fault_may_be_handled_everything_is_live(built):
    """An access of memory under a landing pad may raise: its block is not touched, and before it all registers are live."""
    path = throwing(built, before="mov r9d, 1", faulting="mov rcx, [rsp]")
    program = blocks.read_program(load(path))
    live = liveness.live_out(program)
    (index,) = np.flatnonzero(program.may_raise)
    assert live.registers[index - 1] == liveness.EVERYTHING & (1 << 64) - 1
    rewrites = rewrite(path.read_bytes(), [DELETE, *RULES]).rewrites
    home = program.block_at(int(program.listing.address[index]))
    assert not [r for r in rewrites if home.start <= r.address < home.end]


def test_an_area_of_another_form_leaves_its_function_alone(built):
    """A function whose landing pads are unknown is opaque, with its reason."""
    path = throwing(built)
    data = path.read_bytes()
    area = load(path).section(".gcc_except_table").offset
    assert data[area] == 0xFF
    result = rewrite(data[:area] + b"\x1b" + data[area + 1 :], [DELETE])
    assert result.opaque["lsda"] == 1


CPLUSPLUS = """
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>
struct Noisy { int n; explicit Noisy(int k) : n(k) { std::printf("+%d ", n); } ~Noisy() { std::printf("-%d ", n); } };
static int deep(int n, std::vector<int> &v) {
  Noisy noisy(n); v.push_back(n); int keep = n * 3 + 1;
  try { if (n == 0) throw std::runtime_error("zero"); if (n % 4 == 3) throw n; keep += deep(n - 1, v); }
  catch (int k) { keep += k; if (n > 5) throw; }
  catch (const std::exception &e) { keep -= static_cast<int>(std::string(e.what()).size()); }
  return keep;
}
int main() { std::vector<int> v; long s = 0;
  for (int i = 0; i < 12; i++) { try { s = s * 7 + deep(i, v); } catch (...) { s += 1; } }
  std::printf("%ld %zu\\n", s, v.size()); return static_cast<int>(s & 63); }
"""


@pytest.mark.parametrize(
    "options", [["-O0"], ["-O1"], ["-O2"], ["-Os"], ["-O3", "-static"], ["-O0", "-fnon-call-exceptions"]], ids=" ".join
)
def test_programs_with_exceptions_still_run(built, run, tmp_path, options):
    """Constructors, destructors, handlers and rethrowing work as before at every level."""
    path = built("p.cc", CPLUSPLUS, *options)
    before = run(path)
    out = tmp_path / "p"
    result = rewrite(path.read_bytes(), [*RULES, DELETE])
    out.write_bytes(result.data)
    out.chmod(0o755)
    assert result.rewrites or "-Os" in options
    assert run(out) == before
