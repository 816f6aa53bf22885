"""Hand-written rules, sound by inspection, that fire on compilers' output."""

from ruledb.machine.instruction import parse_sequence
from ruledb.machine.registers import parse_mask
from ruledb.machine.rule import Rule

ALL_FLAGS = "CF PF AF ZF SF OF"


def rule(pattern: str, replacement: str, preserves: str, **conditions) -> Rule:
    """The rule *pattern* ⇒ *replacement* under which *preserves* stays."""
    return Rule(parse_sequence(pattern), parse_sequence(replacement), parse_mask(preserves), (1, 0), (0, 0, 0, 1), **conditions)


def strict(pattern: str, replacement: str, preserves: str) -> Rule:
    """A rule whose replacement performs the accesses of the pattern."""
    return rule(pattern, replacement, preserves, policy="strict")


def forwarding(width: str, register: str) -> Rule:
    """A slot that was just stored is not loaded again."""
    pattern = f"mov {width} ptr [r0+c0], {register}; mov {register}, {width} ptr [r0+c0]"
    return rule(pattern, pattern.partition(";")[0], f"r0 {register} {ALL_FLAGS}", policy="stack", assumes=("stack(r0)",))


CLEAR = rule("mov r0d, 0", "xor r0d, r0d", "r0")
INCREMENT = rule("add r0d, 1", "inc r0d", "r0 PF AF ZF SF OF")
COMPARE_ZERO = rule("cmp r0d, 0", "test r0d, r0d", "r0 CF PF ZF SF OF")

RULES = (
    CLEAR,
    INCREMENT,
    COMPARE_ZERO,
    rule("add r0, 1", "inc r0", "r0 PF AF ZF SF OF"),
    rule("sub r0d, 1", "dec r0d", "r0 PF AF ZF SF OF"),
    rule("sub r0, 1", "dec r0", "r0 PF AF ZF SF OF"),
    rule("cmp r0, 0", "test r0, r0", "r0 CF PF ZF SF OF"),
    rule("cmp r0b, 0", "test r0b, r0b", "r0 CF PF ZF SF OF"),
    rule("mov r0, r0", "", f"r0 {ALL_FLAGS}"),
    rule("mov r0, 0", "xor r0d, r0d", "r0"),
    rule("mov r0, c0", "mov r0d, c0", f"r0 {ALL_FLAGS}", guards=("0 <= c0",)),
    rule("mov r0, r1; mov r1, r0", "mov r0, r1", f"r0 r1 {ALL_FLAGS}"),
    rule("mov r0d, r1d; mov r2d, r0d", "mov r2d, r1d", f"r1 r2 {ALL_FLAGS}"),
    rule("mov r0, r1; mov r2, r0", "mov r2, r1", f"r1 r2 {ALL_FLAGS}"),
    rule("mov r0d, c0; mov r1d, r0d", "mov r1d, c0", f"r1 {ALL_FLAGS}"),
    rule("xor r0d, r0d; mov r1d, r0d", "xor r1d, r1d", f"r1 {ALL_FLAGS}"),
    rule("and r0d, r0d", "test r0d, r0d", "r0d CF PF ZF SF OF"),
    rule("and r0d, 255", "movzx r0d, r0b", "r0"),
    rule("lea r0, [r0+c0]", "add r0, c0", "r0"),
    rule("lea r0, [r1+r0]", "add r0, r1", "r0 r1"),
    rule("lea r0, [r0+r1]", "add r0, r1", "r0 r1"),
    rule("mov r0d, r1d; add r0d, c0", "lea r0d, [r1+c0]", "r0 r1"),
    rule("mov r0, r1; add r0, r2", "lea r0, [r1+r2]", "r0 r1 r2"),
    rule("test r0d, r0d; test r0d, r0d", "test r0d, r0d", f"r0 {ALL_FLAGS}"),
    strict("mov r0d, dword ptr [r1+c0]; mov r2d, r0d", "mov r2d, dword ptr [r1+c0]", f"r1 r2 {ALL_FLAGS}"),
    strict("mov eax, dword ptr [r0+c0]; cdqe", "movsxd rax, dword ptr [r0+c0]", f"rax r0 {ALL_FLAGS}"),
    strict("add r0, r1; movzx r0d, byte ptr [r0]", "movzx r0d, byte ptr [r0+r1*1]", "r0 r1"),
    strict("add r0, c0; mov r1d, dword ptr [r0]", "mov r1d, dword ptr [r0+c0]", "r1"),
    strict("lea r0, [r1+c0]; mov r2d, dword ptr [r0]", "mov r2d, dword ptr [r1+c0]", f"r1 r2 {ALL_FLAGS}"),
    strict("mov r0d, dword ptr [r1+c0]; add r2d, r0d", "add r2d, dword ptr [r1+c0]", f"r1 r2 {ALL_FLAGS}"),
    strict("add dword ptr [r0+c0], 1", "inc dword ptr [r0+c0]", "r0 PF AF ZF SF OF"),
    strict("mov r0d, dword ptr [rsp+c0]; mov r1d, r0d", "mov r1d, dword ptr [rsp+c0]", f"r1 {ALL_FLAGS}"),
    rule("lea r0, [rip+c0]; mov r1, r0", "lea r1, [rip+c0]", f"r1 {ALL_FLAGS}"),
    strict("lea r0, [rip+c0]; mov r1d, dword ptr [r0+c1]", "mov r1d, dword ptr [rip+(c0+c1)]", f"r1 {ALL_FLAGS}"),
    forwarding("dword", "r1d"),
    forwarding("qword", "r1"),
)
