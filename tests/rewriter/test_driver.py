"""Whole binaries: they still do the same, and only planned bytes change."""

from collections import Counter
from contextlib import suppress
from random import Random

import pytest
from sample_rules import CLEAR, RULES, rule

from rewriter import driver, matcher, patcher
from rewriter.driver import Options, OptionsError, rewrite
from rewriter.patcher import Edit, apply
from ruledb.machine.codec import agrees, decode
from ruledb.machine.elf import ElfError, load
from ruledb.machine.functions import function_at, functions
from ruledb.machine.registers import ALL_FLAGS, ALL_REGISTERS


@pytest.fixture(scope="module")
def rewritten(corpus):
    """Every binary of the corpus, before and after."""
    return {path.name: (path.read_bytes(), rewrite(path.read_bytes(), RULES)) for path in sorted((corpus / "bin").iterdir())}


def test_every_program_prints_the_same(rewritten, corpus, run, tmp_path):
    """Rewritten binaries of all levels end with the same code and print what they printed before."""
    path = tmp_path / "program"
    for name, (_, result) in rewritten.items():
        path.write_bytes(result.data)
        path.chmod(0o755)
        expected = (corpus / "expected" / f"{name.rpartition('-')[0]}.txt").read_bytes()
        assert (name, run(path)) == (name, (0, expected))
        path.unlink()


def test_there_is_something_to_do(rewritten):
    """The corpus gives most of the sample rules an occasion, and the counts of bytes add up."""
    uses = Counter(r.rule for _, result in rewritten.values() for r in result.rewrites)
    assert sum(uses.values()) > 1000
    assert len(uses) > 6


def test_lengths_stay(rewritten):
    """A rewritten file is as long as before; without a rewrite it is byte-identical."""
    for old, result in rewritten.values():
        assert len(result.data) == len(old)
        assert (result.data != old) == bool(result.rewrites)


def test_differences_lie_in_functions_and_decode(rewritten, corpus):
    """Every byte that differs belongs to a function whose old and new bytes both decoders read, from end to end."""
    for name in list(rewritten)[::6]:
        old, result = rewritten[name]
        image = load(corpus / "bin" / name)
        found = functions(image)
        touched = set()
        for segment in image.segments:
            for offset in range(segment.offset, segment.offset + segment.file_size):
                if old[offset] != result.data[offset]:
                    touched.add(function_at(found, offset - segment.offset + segment.address))
        assert None not in touched
        for function in touched:
            start = image.file_offset(function.start)
            code = result.data[start : start + function.end - function.start]
            assert agrees(code), name


def test_rewriting_the_output_changes_nothing(rewritten):
    """The result is a fixpoint, and what was refused in the end is what a fresh run refuses."""
    for name in list(rewritten)[::4]:
        _, result = rewritten[name]
        again = rewrite(result.data, RULES)
        assert (name, again.rewrites, again.data == result.data) == (name, (), True)
        assert again.refused == result.refused


CHAINED = """
    .intel_syntax noprefix
    .text
    .globl main
main:
    .cfi_startproc
    mov ecx, edi
    mov eax, ecx
    test eax, eax
    js 1f
    mov edx, ecx
    mov edx, 5
    add eax, edx
1:  ret
    .cfi_endproc
    .size main, .-main
    .section .note.GNU-stack,"",@progbits
"""


def test_what_a_rewrite_makes_possible_elsewhere_is_found(build):
    """Where a rewrite stops a register from being read, another pass rewrites the block ahead; then the program is settled."""
    chain = [
        rule("mov r0d, r1d; mov r2d, r0d", "mov r2d, r1d", "r1 r2 CF PF AF ZF SF OF"),
        rule("mov r0d, r1d; mov r0d, c0", "mov r0d, c0", "r0 r1 CF PF AF ZF SF OF"),
    ]
    result = rewrite(build(CHAINED, suffix=".s").read_bytes(), chain)
    assert [r.rule for r in result.rewrites] == [chain[1].digest, chain[0].digest]
    assert result.passes == 3
    assert rewrite(result.data, chain).data == result.data


def test_what_no_other_block_can_tell_needs_no_other_pass(build):
    """Where the only rewrite leaves all that its block reads and writes as it was, the first pass is the last."""
    twice = rule("xor r0d, r0d; xor r0d, r0d", "xor r0d, r0d", "r0 CF PF AF ZF SF OF")
    result = rewrite(build(CHAINED.replace("mov eax, ecx", "xor eax, eax\n xor eax, eax"), suffix=".s").read_bytes(), [twice])
    assert (len(result.rewrites), result.passes) == (1, 1)
    assert rewrite(result.data, [twice]).data == result.data


@pytest.mark.parametrize("cost", ["size", "time"])
def test_two_runs_give_the_same(corpus, cost):
    """The same input gives the same bytes and the same rewrites, whatever the order of the rules."""
    data = (corpus / "bin" / "sorting-O0").read_bytes()
    one, other = rewrite(data, RULES, Options(cost)), rewrite(data, RULES[::-1], Options(cost))
    assert (one.data, one.rewrites) == (other.data, other.rewrites)
    assert rewrite(one.data, RULES, Options(cost)).data == one.data


def test_without_rules_nothing_changes(corpus):
    """With nothing to do, the output is the input."""
    data = (corpus / "bin" / "sorting-O0").read_bytes()
    result = rewrite(data, ())
    assert (result.data, result.rewrites, result.passes) == (data, (), 1)


def test_rewrites_tell_what_they_did(corpus):
    """Each rewrite's bytes are found at its address: the old ones before, the new ones after."""
    data = (corpus / "bin" / "vm-O0").read_bytes()
    result = rewrite(data, [CLEAR])
    image = load(corpus / "bin" / "vm-O0")
    assert result.rewrites
    for done in result.rewrites:
        offset = image.file_offset(done.address)
        assert str(next(decode(data[offset:])).instruction) == done.before
        assert str(next(decode(result.data[offset:])).instruction) == done.after
        assert (done.rule, done.bytes_saved, done.instructions_removed) == (CLEAR.digest, 3, 0)
        assert "CF" not in done.live_out


SWITCH = """
#include <stdio.h>
static int f(int n) { switch (n) { case 0: return puts("a"); case 1: return puts("bb"); case 2: return 7; case 3: return printf("%d\\n", n);
  case 4: return n * 3; case 5: return puts("x") + 1; default: return 0; } }
int main(int argc, char **argv) { long s = 0; for (int i = 0; i < 9; i++) { s += f(i + argc - 1); s = s + 1; } printf("%ld\\n", s); return (int)s & 63; }
"""

PLANTED = """
    .intel_syntax noprefix
    .globl flag, lane
    .type flag, @function
    .type lane, @function
flag:
    .cfi_startproc
    cmp edi, esi
    mov eax, 0
    setb al
    ret
    .cfi_endproc
    .size flag, .-flag
lane:
    .cfi_startproc
    mov ecx, edi
    mov eax, ecx
    add eax, ecx
    ret
    .cfi_endproc
    .size lane, .-lane
    .globl main
main:
    .cfi_startproc
    push rbx
    .cfi_adjust_cfa_offset 8
    mov edi, 1
    mov esi, 2
    call flag
    mov ebx, eax
    mov edi, 20
    call lane
    add eax, ebx
    pop rbx
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size main, .-main
    .section .note.GNU-stack,"",@progbits
"""


@pytest.fixture(scope="module")
def planted(build):
    """A program in which sample rules match where they must not be applied: it ends with 41."""
    return build(PLANTED, suffix=".s")


def test_live_locations_are_respected(planted, run, tmp_path):
    """Where the flags or the register that a rule changes are read, it is refused, with the reason."""
    result = rewrite(planted.read_bytes(), RULES)
    assert result.refused["live flags"] >= 1
    assert result.refused["live register"] >= 1
    path = tmp_path / "p"
    path.write_bytes(result.data)
    path.chmod(0o755)
    assert run(planted)[0] == run(path)[0] == 41


@pytest.mark.parametrize("mutation", ["flags", "registers"])
def test_the_check_of_liveness_can_fail(planted, run, tmp_path, monkeypatch, mutation):
    """Without looking at the flags, or at the registers, the planted program is broken: the test above has teeth."""
    respected = {"flags": ALL_REGISTERS, "registers": ALL_FLAGS}[mutation]
    whole = matcher.hardware_mask
    monkeypatch.setattr(matcher, "hardware_mask", lambda mask, families: whole(mask, families) & respected)
    path = tmp_path / "p"
    path.write_bytes(rewrite(planted.read_bytes(), RULES).data)
    path.chmod(0o755)
    assert run(path)[0] != 41


def test_skipped_functions_stay(build):
    """A function that the user names, or a range, is left as it is, and places in it are counted."""
    path = build(SWITCH, "-O0")
    main = next(s for s in load(path).symbols if s.name == "main")
    inside = range(main.address, main.address + main.size)
    assert any(r.address in inside for r in rewrite(path.read_bytes(), RULES).rewrites)
    for skip in ("main", f"{inside.start:#x}-{inside.stop:#x}"):
        result = rewrite(path.read_bytes(), RULES, Options(skip=(skip,)))
        assert [r for r in result.rewrites if r.address in inside] == []
        assert result.refused["skip"] >= 1


def test_a_function_to_skip_must_exist(planted):
    """A name that no function has is refused, with the name."""
    with pytest.raises(OptionsError, match=r"skip 'nobody': p has no function of this name"):
        rewrite(planted.read_bytes(), RULES, Options(skip=("nobody",)), "p")


@pytest.mark.parametrize(("field", "value"), [("cost", "beauty"), ("march", "z80"), ("abi", "win")])
def test_unknown_options_are_refused(field, value):
    """Options that cannot be meant are never built."""
    with pytest.raises(OptionsError, match=f"{field} '{value}': expected one of"):
        Options(**{field: value})


def test_object_files_are_refused(build):
    """Code that is still to be linked is no program."""
    path = build("int f(void) { return 0; }", "-c")
    with pytest.raises(ElfError, match="is an object file; expected a linked program"):
        rewrite(path.read_bytes(), RULES)


MARKED = """
int main(int argc, char **argv)
{{
    int r = 0;
    __asm__ volatile ("mov $0, %%eax\\n\\t{}" ::: "rax", "rbx", "rdi", "cc");
    return r;
}}
"""


@pytest.mark.parametrize(
    "marker", ["mov $111, %%ebx\\n\\t.byte 0x64, 0x67, 0x90", "rol $3, %%rdi; rol $13, %%rdi; rol $61, %%rdi; rol $51, %%rdi; xchg %%rbx, %%rbx"]
)  # fmt: skip
def test_functions_with_simulator_requests_are_left_alone(build, marker):
    """Around a request, registers are read that no code reads: such a function is counted, not touched."""
    path = build(MARKED.format(marker), "-O0")
    main = next(s for s in load(path).symbols if s.name == "main")
    result = rewrite(path.read_bytes(), RULES)
    assert result.opaque["marker"] == 1
    assert [r for r in result.rewrites if main.address <= r.address < main.address + main.size] == []


PROBED = """
int main(void)
{
    int r = 0;
    __asm__ volatile ("990: nop\\n\\t"
        ".pushsection .note.stapsdt,\\"\\",\\"note\\"\\n\\t.balign 4\\n\\t.4byte 8, 992f-991f, 3\\n\\t.asciz \\"stapsdt\\"\\n"
        "991: .8byte 990b, 0, 0\\n\\t.asciz \\"p\\"\\n\\t.asciz \\"n\\"\\n\\t.asciz \\"-4@%%eax\\"\\n992: .balign 4\\n\\t.popsection"
        :: "a" (0));
    return r;
}
"""


def test_functions_with_probes_are_left_alone(build):
    """A tracer reads registers at a probe: its function is counted, not touched."""
    path = build(PROBED, "-O0", "-no-pie", "-fno-pie")
    main = next(s for s in load(path).symbols if s.name == "main")
    result = rewrite(path.read_bytes(), RULES)
    assert result.opaque["probe"] == 1
    assert [r for r in result.rewrites if main.address <= r.address < main.address + main.size] == []


def test_damaged_files_are_refused_or_left_in_step(program):
    """Whatever bytes are damaged, the file is refused as no program, or comes out with its length."""
    random = Random(1)
    whole = program.read_bytes()
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(random.choice([1, 2, 20])):
            end = random.choice([64, 1000, len(data)])
            data[random.randrange(end)] = random.choice([0, 1, 127, 128, 255])
        with suppress(ElfError):
            assert len(rewrite(bytes(data), RULES).data) == len(data)


def test_the_scrubbing_of_secrets_stays(build, run, tmp_path):
    """With a stack protector everywhere, `mov eax, 0` behind the store of the secret is kept, and counted."""
    path = build('#include <stdio.h>\nint main(void) { char b[40]; return snprintf(b, 40, "%d", 7); }', "-O0", "-fstack-protector-all")
    dead_clearing = rule("xor r0d, r0d", "", "-")
    result = rewrite(path.read_bytes(), [*RULES, dead_clearing])
    assert result.refused["keep"] >= 1
    out = tmp_path / "p"
    out.write_bytes(result.data)
    out.chmod(0o755)
    assert run(out) == run(path)
    assert result.data.count(bytes.fromhex("31c0")) >= 1


def test_an_edit_outside_the_plan_is_noticed(program):
    """A byte that differs and lies in no edit stops the run."""
    image = load(program)
    with pytest.raises(AssertionError, match="no edit covers"):
        patcher._require_planned(image.data, b"\0" + image.data[1:], [(5, 9)])


def test_an_edit_that_decoders_read_differently_is_noticed(program):
    """Bytes that are no instruction are never written."""
    image = load(program)
    with pytest.raises(AssertionError, match="read 06 differently"):
        apply(image, [Edit(image.entry, b"\x06")])


def test_blocks_must_get_cheaper(corpus, monkeypatch):
    """A rewrite that does not lower its block's cost is refused, so that no run goes round in circles."""
    monkeypatch.setitem(matcher.COSTS, "size", lambda instructions, n_bytes: (n_bytes, len(instructions)))  # not known to add up
    monkeypatch.setattr(driver, "_cost", lambda *_: (0,))
    result = rewrite((corpus / "bin" / "vm-O0").read_bytes(), [CLEAR])
    assert (result.rewrites, result.refused["not cheaper"] > 0) == ((), True)


@pytest.mark.parametrize("options", [["-O2"], ["-O2", "-no-pie", "-fno-pie"], ["-Os"], ["-O2", "-static"], ["-O0", "-fcf-protection=full"], ["-O2", "-pg"], ["-O2", "-Wl,-q"], ["-O0", "-ffunction-sections"]])  # fmt: skip
def test_kinds_of_programs_still_run(build, run, tmp_path, monkeypatch, options):
    """Programs of many build options behave the same when rewritten."""
    path = build(SWITCH, *options)
    out = tmp_path / "p"
    out.write_bytes(rewrite(path.read_bytes(), RULES).data)
    out.chmod(0o755)
    monkeypatch.chdir(tmp_path)  # a profiled program writes its profile here
    assert run(out) == run(path)
