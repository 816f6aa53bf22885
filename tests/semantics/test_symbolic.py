"""Composition, definedness, constants, and the masks of what is read and written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pysmt.environment import Environment

from ruledb.machine.constant import evaluate, parse_constant
from ruledb.machine.instruction import parse_instruction, parse_sequence
from ruledb.machine.registers import FLAGS, mask_text, parse_mask
from ruledb.semantics import symbolic
from ruledb.semantics.memory import Kind, distance, free_loads
from ruledb.semantics.symbolic import UnmodelledForm, constant_term, flag_term, initial_state, reads_and_writes, register_term, run
from ruledb.semantics.terms import Effect, Terms


@pytest.fixture
def t():
    """A builder in an environment of its own."""
    return Terms(Environment())


def _run(t, text, **options):
    return run(t, parse_sequence(text), initial_state(t), **options)


def _value(t, term, **inputs):
    """The number that *term* has where the named symbols have the given values and all others 0."""
    environment = t.manager.env  # a node's own simplify() would mix in pySMT's global environment, with wrong results
    symbols = environment.fvo.get_free_variables(term)
    values = {s: t.const(inputs.get(s.symbol_name(), 0), s.symbol_type().width) for s in symbols}
    return environment.simplifier.simplify(environment.substituter.substitute(term, values)).constant_value()


def test_inputs_are_named_symbols(t):
    """A register that nothing has written is the symbol r<family>, a flag the symbol of its name."""
    state = initial_state(t)
    assert register_term(t, state, 3) is t.symbol("r3", 64)
    assert flag_term(t, state, "CF") is t.symbol("CF", 1)


def test_windows_of_equal_meaning_can_be_one_node(t):
    """Moving a value around gives back the very same node."""
    state = _run(t, "xchg rax, rbx; xchg rax, rbx; mov rcx, rax")
    assert (state.registers[0], state.registers[3], state.registers[1]) == (t.symbol("r0", 64), t.symbol("r3", 64), t.symbol("r0", 64))


def test_partial_writes_merge_and_32_bit_writes_clear(t):
    """8- and 16-bit writes keep the other bits, a high byte is bits 15..8, a 32-bit write clears the upper half."""
    old = 0x1122334455667788
    expected = {
        "mov al, -1": 0x11223344556677FF,
        "mov ah, -1": 0x112233445566FF88,
        "mov ax, -1": 0x112233445566FFFF,
        "mov eax, -1": 0xFFFFFFFF,
    }
    assert {text: _value(t, _run(t, text).registers[0], r0=old) for text in expected} == expected


def test_exchange_of_eax_with_itself_clears_the_upper_half(t):
    """As an instruction value, xchg eax, eax zero-extends eax."""
    assert _value(t, _run(t, "xchg eax, eax").registers[0], r0=(1 << 64) - 1) == 0xFFFFFFFF


def test_nop_changes_nothing(t):
    """A nop, with any operand, leaves the state as it was."""
    assert _run(t, "nop; nop dword ptr [rax]") == initial_state(t)


def test_unmodelled_instruction_raises(t):
    """Running an unmodelled instruction raises and names it."""
    with pytest.raises(UnmodelledForm, match="cpuid"):
        _run(t, "mov eax, 1; cpuid")


def test_effect_that_differs_from_its_line_raises(t, monkeypatch):
    """An effect that writes other flags than its line says is an error, never ignored."""
    monkeypatch.setattr(symbolic, "bind", lambda i: _with_semantics(i, lambda *_: Effect()))
    with pytest.raises(AssertionError, match="differ in what they write"):
        _run(t, "mov eax, ebx")


def _with_semantics(instruction, function):
    from dataclasses import replace

    from ruledb.semantics.forms import bind

    bound = bind(instruction)
    return replace(bound, form=replace(bound.form, semantics=function))


_UNDEFINED = {
    "add eax, ebx": "", "adc al, bl": "", "cmp eax, 5": "", "inc ax": "", "neg rax": "", "not eax": "", "mov eax, ebx": "",
    "and eax, ebx": "AF", "test al, al": "AF", "xor ax, bx": "AF", "or rax, rbx": "AF",
    "shl eax, 1": "AF", "shl eax": "AF", "shl eax, 2": "AF OF", "shl eax, 0": "", "shl eax, 32": "", "shl eax, 33": "AF", "shl rax, 33": "AF OF",
    "shl al, 7": "AF OF", "shl al, 8": "CF AF OF", "shl ax, 8": "AF OF", "shl ax, 16": "CF AF OF", "shr ax, 17": "CF AF OF", "sar al, 8": "AF OF", "sar ax, 31": "AF OF",
    "rol eax, 1": "", "rol eax, 2": "OF", "rol al, 8": "OF", "ror al, 9": "OF", "ror rax, 64": "", "ror eax": "",
    "shld eax, ebx, 1": "AF", "shld eax, ebx, 2": "AF OF", "shld eax, ebx, 0": "", "shld ax, bx, 16": "AF OF", "shrd ax, bx, 17": "CF PF AF ZF SF OF",
    "mul ebx": "PF AF ZF SF", "imul al": "PF AF ZF SF", "imul eax, ebx": "PF AF ZF SF", "imul eax, ebx, 3": "PF AF ZF SF",
    "bt eax, ebx": "PF AF SF OF", "btc rax, 5": "PF AF SF OF", "bsf eax, ebx": "CF PF AF SF OF", "bsr ax, bx": "CF PF AF SF OF", "sete al": "", "cmc": "",
}  # fmt: skip


@pytest.mark.parametrize("text", _UNDEFINED)
def test_undefined_flags_are_those_of_the_manual(t, text):
    """After each instruction exactly the flags that the manual leaves undefined are undefined."""
    state = _run(t, text)
    undefined = {key for key, condition in state.defined.items() if condition is t.const(0, 1)}
    assert state.defined.keys() == undefined == set(_UNDEFINED[text].split())
    assert all(any("!" in symbol for symbol in t.names(state.flags[name])) for name in undefined)


@pytest.mark.parametrize(
    ("text", "flag", "defined_counts"),
    [
        ("shl eax, cl", "OF", {0, 1}), ("shl eax, cl", "AF", {0}), ("shl al, cl", "CF", set(range(8))), ("shr ax, cl", "CF", set(range(16))),
        ("rol rax, cl", "OF", {0, 1}), ("shld ax, bx, cl", "CF", set(range(17))), ("shrd ax, bx, cl", "ZF", set(range(17))), ("shld eax, ebx, cl", "OF", {0, 1}),
    ],
)  # fmt: skip
def test_definedness_follows_the_masked_count(t, text, flag, defined_counts):
    """A flag of a shift by cl is defined for exactly the masked counts of the manual."""
    mask = 63 if "rax" in text else 31
    condition = _run(t, text).defined[flag]
    assert {n for n in range(256) if _value(t, condition, r1=n)} == {n for n in range(256) if n & mask in defined_counts}


def test_overwriting_defines_again(t):
    """A location that a later instruction overwrites is defined again; one that a count of 0 may keep is not."""
    assert _run(t, "and eax, ebx; add eax, ebx").defined == {}
    kept = _run(t, "and eax, ebx; shl eax, cl").defined["AF"]
    assert _value(t, kept, r1=0) == 0
    assert _run(t, "and eax, ebx; shl eax, 0").defined.keys() == {"AF"}


def test_sides_have_their_own_undefined_symbols(t):
    """Undefined symbols of two sides, and of two runs in a row, are different."""
    left = _run(t, "and eax, ebx")
    right = _run(t, "and eax, ebx", side="right")
    again = run(t, parse_sequence("and eax, ebx"), left)
    assert len({left.flags["AF"], right.flags["AF"], again.flags["AF"]}) == 3
    assert left.flags["AF"].symbol_name().startswith("left!undef0")
    assert right.flags["AF"].symbol_name().startswith("right!undef0")


@pytest.mark.parametrize("text", ["bsf eax, ecx", "bsr rax, rcx"])
def test_scan_of_zero_keeps_in_patterns_and_is_undefined_in_replacements(t, text):
    """A scan of 0 keeps all 64 bits in a pattern; in a replacement the whole destination is undefined."""
    pattern, replacement = _run(t, text), _run(t, text, side="right", is_pattern=False)
    assert _value(t, pattern.registers[0], r0=0x1122334455667788, r1=0) == 0x1122334455667788
    assert 0 not in pattern.defined
    assert [_value(t, replacement.defined[0], r1=n) for n in (0, 1)] == [0, 1]
    undefined = {name: (1 << 64) - 1 for name in t.names(replacement.registers[0]) if "!" in name}
    assert _value(t, replacement.registers[0], **undefined) == (1 << 64) - 1


def test_partly_undefined_register_has_no_definedness(t):
    """A 16-bit double shift by more than 16 keeps the other lanes, so the register as a whole is not called undefined."""
    state = _run(t, "shld ax, bx, 17")
    assert 0 not in state.defined
    assert _value(t, state.registers[0], r0=0x1122334455667788) == 0x1122334455660000


_CONSTANTS = ["5", "-1", "c0", "-c0", "~c0", "c0 + c1", "c0 - c1", "c0 * c1", "c0 & c1", "c0 | c1", "c0 ^ c1", "c0 << c1", "~(c0 + 1)"]
_NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.sampled_from(_CONSTANTS), _NUMBERS, st.one_of(_NUMBERS, st.integers(0, 64)))
def test_constant_terms_equal_their_values(text, c0, c1):
    """The term of a constant expression has the value that the expression evaluates to."""
    t, constant = Terms(Environment()), parse_constant(text)
    assert _value(t, constant_term(t, constant), c0=c0, c1=c1) == evaluate(constant, (c0, c1)) % (1 << 64)


def test_log2_of_powers_of_two(t):
    """The term of log2 is exact on all 64 powers of two."""
    term = constant_term(t, parse_constant("log2(c0)"))
    assert [_value(t, term, c0=1 << i) for i in range(64)] == list(range(64))


def test_operand_sees_the_low_bits_of_a_constant(t):
    """An operand of width w sees the low w bits of the 64-bit constant, a count the low 8."""
    assert _value(t, _run(t, "mov al, c0").registers[0], c0=0x1FF) == 0xFF
    assert _value(t, _run(t, "mov eax, c0").registers[0], c0=-1) == 0xFFFFFFFF
    assert _value(t, _run(t, "shl rax, c0").registers[0], r0=1, c0=0x104) == 0x10


@pytest.mark.parametrize(
    ("text", "reads", "may", "must"),
    [
        ("mov al, bl", "bl", "al", "al"),
        ("mov ah, bl", "bl", "ah", "ah"),
        ("mov eax, ebx", "ebx", "rax", "rax"),
        ("add eax, ebx", "eax ebx", "rax CF PF AF ZF SF OF", "rax CF PF AF ZF SF OF"),
        ("inc ax", "ax", "ax PF AF ZF SF OF", "ax PF AF ZF SF OF"),
        ("adc al, 1", "al CF", "al CF PF AF ZF SF OF", "al CF PF AF ZF SF OF"),
        ("xor eax, eax", "-", "rax CF PF AF ZF SF OF", "rax CF PF ZF SF OF"),
        ("sbb eax, eax", "CF", "rax CF PF AF ZF SF OF", "rax CF PF AF ZF SF OF"),
        ("shl rbx, cl", "rbx cl", "rbx CF PF AF ZF SF OF", "rbx"),
        ("shl ebx, 0", "ebx", "rbx", "rbx"),
        ("shl ebx, 3", "ebx", "rbx CF PF AF ZF SF OF", "rbx CF PF ZF SF"),
        ("shl ebx, c0", "ebx", "rbx CF PF AF ZF SF OF", "rbx"),
        ("rol bx, 1", "bx", "bx CF OF", "bx CF OF"),
        ("cmovl eax, ecx", "eax ecx SF OF", "rax", "rax"),
        ("cmovbe ax, cx", "ax cx CF ZF", "ax", "ax"),
        ("setg r9b", "ZF SF OF", "r9b", "r9b"),
        ("bsf eax, ecx", "ecx", "rax CF PF AF ZF SF OF", "ZF"),
        ("bt eax, ecx", "eax ecx", "CF PF AF SF OF", "CF"),
        ("mul bl", "al bl", "ax CF PF AF ZF SF OF", "ax CF OF"),
        ("mul ebx", "eax ebx", "rax rdx CF PF AF ZF SF OF", "rax rdx CF OF"),
        ("imul ax, bx, 3", "bx", "ax CF PF AF ZF SF OF", "ax CF OF"),
        ("cwd", "ax", "dx", "dx"),
        ("cbw", "al", "ax", "ax"),
        ("xchg ah, bl", "ah bl", "ah bl", "ah bl"),
        ("lea eax, [rbx+rcx*4+8]", "rbx rcx", "rax", "rax"),
        ("cmc", "CF", "CF", "CF"),
        ("nop dword ptr [rax]", "-", "-", "-"),
        ("mov eax, dword ptr [rbx+rcx*4]", "rcx rbx", "rax", "rax"),
        ("mov dword ptr [rbx], eax", "eax rbx", "-", "-"),
        ("add word ptr [rbx], ax", "ax rbx", "CF PF AF ZF SF OF", "CF PF AF ZF SF OF"),
        ("sete byte ptr [rbx]", "rbx ZF", "-", "-"),
        ("mov qword ptr [rip+0x40], rax", "rax", "-", "-"),
        ("push rbx", "rbx rsp", "rsp", "rsp"),
        ("pop rbx", "rsp", "rbx rsp", "rbx rsp"),
        ("pop rsp", "rsp", "rsp", "rsp"),
        ("leave", "rbp", "rsp rbp", "rsp rbp"),
        ("div ecx", "eax ecx edx", "rax rdx CF PF AF ZF SF OF", "rax rdx"),
        ("cmpxchg qword ptr [rbx], rcx", "rax rcx rbx", "rax CF PF AF ZF SF OF", "CF PF AF ZF SF OF"),
        ("xadd dword ptr [rbx], ecx", "ecx rbx", "rcx CF PF AF ZF SF OF", "rcx CF PF AF ZF SF OF"),
        ("jle L", "ZF SF OF", "-", "-"),
        ("adcx eax, ebx", "eax ebx CF", "rax CF", "rax CF"),
        ("mulx rax, rbx, rcx", "rcx rdx", "rax rbx", "rax rbx"),
    ],
)
def test_reads_and_writes(text, reads, may, must):
    """Reads are the operands the terms depend on; killed is only what every execution overwrites with a defined value."""
    assert [mask_text(m) for m in reads_and_writes(parse_instruction(text))] == [mask_text(parse_mask(m)) for m in (reads, may, must)]


def test_killed_is_part_of_written():
    """What an instruction kills it may also write, and reads stay within registers and flags it names."""
    for text in ("add al, 1", "shld ax, bx, cl", "bsr rax, rbx", "xchg eax, ebx", "rol al, cl"):
        _, may, must = reads_and_writes(parse_instruction(text))
        assert must & ~may == 0


def test_flags_not_written_stay_inputs(t):
    """A flag that an instruction does not write is absent from the state and so still the input."""
    state = _run(t, "inc eax; rol ebx, 1; bt ecx, 3")
    assert set(state.flags) == set(FLAGS)
    assert "ZF" not in _run(t, "bt ecx, 3").flags
    assert "CF" not in _run(t, "dec eax").flags


def test_accesses_are_in_order(t):
    """Loads come before the store of one instruction, and those of one instruction before those of the next."""
    state = _run(t, "add dword ptr [rbx], eax; push qword ptr [rcx]; div r8w; mov dl, byte ptr [rsi]", memory=free_loads)
    assert [(a.kind, a.n_bytes) for a in state.accesses] == [
        (Kind.LOAD, 4), (Kind.STORE, 4), (Kind.LOAD, 8), (Kind.STORE, 8), (Kind.DIVISION, 6), (Kind.LOAD, 1),
    ]  # fmt: skip
    assert distance(state.accesses[3].address, t.symbol("r4", 64)) == (1 << 64) - 8


@pytest.mark.parametrize(
    ("text", "address"),
    [("pop qword ptr [rsp]", 8), ("pop qword ptr [rsp+8]", 16), ("push qword ptr [rsp]", -8), ("pop word ptr [rsp]", 2)],
)
def test_stack_operands_are_addressed_as_the_manual_says(t, text, address):
    """A pop to memory addresses it with the new rsp, a push stores below the old one."""
    store = _run(t, text, memory=free_loads).accesses[-1]
    assert store.kind is Kind.STORE
    assert distance(store.address, t.symbol("r4", 64)) == address % (1 << 64)


@pytest.mark.parametrize(
    ("text", "kind"),
    [("div ecx", Kind.DIVISION), ("div bl", Kind.DIVISION), ("idiv ecx", Kind.SIGNED_DIVISION), ("idiv bl", Kind.SIGNED_DIVISION)],
)
def test_divisions_tell_their_sign(t, text, kind):
    """Signed and unsigned divisions trap in different cases, and so are different events."""
    assert [a.kind for a in _run(t, text, memory=free_loads).accesses] == [kind]


def test_nothing_runs_behind_a_jump(t):
    """A jump that does not close the window is refused, also where the window is run piece by piece."""
    with pytest.raises(UnmodelledForm, match="behind a jump"):
        _run(t, "jne L; mov eax, 1", memory=free_loads)
    with pytest.raises(UnmodelledForm, match="behind a jump"):
        run(t, parse_sequence("mov eax, 1"), _run(t, "jne L", memory=free_loads))


def test_what_is_popped_into_the_stack_pointer_stays(t):
    """`pop rsp` leaves what it loaded, `push rsp` stores what rsp was; xadd of a register with itself leaves the sum."""
    assert _run(t, "pop rsp", memory=free_loads).registers[4] is t.symbol("load0_64", 64)
    assert _run(t, "push rsp", memory=free_loads).accesses[0].value is t.symbol("r4", 64)
    assert _value(t, _run(t, "xadd rax, rax").registers[0], r0=21) == 42
    assert _value(t, _run(t, "mulx rax, rax, rcx").registers[0], r1=1 << 63, r2=6) == 3


def test_rip_relative_addresses_are_relative_to_the_unknown(t):
    """Two of them differ by a known distance, and from every number by an unknown one."""
    state = _run(t, "lea rax, [rip+0x4000]; lea rcx, [rip+0x4008]")
    assert distance(state.registers[1], state.registers[0]) == 8
    assert distance(state.registers[0], t.const(0x4000, 64)) is None
    assert t.names(state.registers[0]) == {"image"}


@pytest.mark.parametrize("text", ["mov eax, dword ptr [rbx]", "mov dword ptr [rbx], eax", "push rax", "div ecx", "jne L"])
def test_without_a_model_of_memory_accesses_are_refused(t, text):
    """Who models registers and flags alone never takes an access, a division or a jump for nothing."""
    with pytest.raises(UnmodelledForm, match="registers and flags alone"):
        _run(t, text)
