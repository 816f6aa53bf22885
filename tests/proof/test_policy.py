"""What a replacement may do to memory under each policy and assumption, and that every condition is needed."""

import pytest
from asm import code, mask, seq

from ruledb.machine.codec import normalise
from ruledb.machine.instruction import Label
from ruledb.machine.policy import read_conditions
from ruledb.machine.registers import ACCESSES, FAULTS, MEMORY, TAKEN
from ruledb.proof import accesses as accesses_module
from ruledb.proof import prover as prover_module
from ruledb.proof import query as query_module
from ruledb.proof.prover import FIRST, SECOND, Proved, Prover, Refuted, Undecided
from ruledb.proof.replay import replay_counterexample, replay_rule
from ruledb.proof.solvers import Sat, ask
from ruledb.semantics import symbolic
from ruledb.semantics.forms import features
from ruledb.semantics.memory import Kind
from ruledb.semantics.terms import Terms

SLOT = ("stack(rbp)",)
BELOW = ("private(rsp-8)", "dead(rsp-8)")


def window(text):
    """The instructions of *text* as the decoder would give them, jumps with their names."""
    return tuple(i if any(isinstance(o, Label) for o in i.operands) else normalise(i) for i in seq(text))


def verdict(prover, left, right, live="-", policy="strict", assumes=(), **options):
    """What the prover says of texts under a policy."""
    conditions = read_conditions(policy, assumes)
    return prover.prove(window(left), window(right), mask(live), plausible=0, conditions=conditions, **options)


ALLOWED = [
    # address folded into the access
    ("lea rax, [rbp+8]; mov ecx, [rax]", "mov ecx, [rbp+8]", "rcx", "strict", ()),
    ("add rax, 24; mov ecx, [rax-8]", "mov ecx, [rax+16]", "rcx", "strict", ()),
    ("lea rax, [rip+0x4000]; mov ecx, [rax+8]", "mov ecx, [rip+0x4008]", "rcx", "strict", ()),
    ("mov rax, rdi; add rax, rsi; mov [rax], cl", "mov [rdi+rsi], cl", "-", "strict", ()),
    # access folded into the operation
    ("mov eax, [rbx]; add ecx, eax", "add ecx, [rbx]", "rcx", "strict", ()),
    ("mov eax, [rbx]; add eax, 5; mov [rbx], eax", "add dword ptr [rbx], 5", "-", "strict", ()),
    ("mov al, [rbx]; movzx eax, al", "movzx eax, byte ptr [rbx]", "rax", "strict", ()),
    ("xor eax, eax; mov [rdi+8], eax", "mov dword ptr [rdi+8], 0", "-", "strict", ()),
    ("mov rax, [rdi]; mov rcx, [rax]; add rdx, rcx", "mov rax, [rdi]; add rdx, [rax]", "rdx", "strict", ()),
    ("leave", "mov rsp, rbp; pop rbp", "rbp", "strict", ()),
    # below rsp
    ("push rax; mov ecx, [rbx]; pop rdx", "mov rdx, rax; mov ecx, [rbx]", "rcx rdx", "strict", BELOW),
    ("push 5; pop rdx", "mov edx, 5", "rdx", "strict", BELOW),
    ("push rax; mov [rbx], rcx; pop rdx", "mov rdx, rax; mov [rbx], rcx", "rdx", "strict", BELOW),
    ("push rax; push rcx; pop rdx; pop rsi", "mov rdx, rcx; mov rsi, rax", "rdx rsi", "strict", ("private(rsp-16)", "dead(rsp-16)")),
    # slots
    ("mov [rbp-8], rax; mov rcx, [rbp-8]", "mov [rbp-8], rax; mov rcx, rax", "rcx", "stack", SLOT),
    ("mov [rsp+8], rax; movzx ecx, byte ptr [rsp+10]", "mov [rsp+8], rax; mov rcx, rax; shr rcx, 16; movzx ecx, cl", "rcx", "stack", ()),
    ("mov rax, [rbp-8]; mov rcx, [rbp-8]", "mov rax, [rbp-8]; mov rcx, rax", "rax rcx", "stack", SLOT),
    ("mov [rbp-8], rax; mov [rbp-16], rdx; mov rcx, [rbp-8]", "mov [rbp-8], rax; mov [rbp-16], rdx; mov rcx, rax", "rcx", "stack", SLOT),
    ("mov [rbp-8], rax; mov [rbp-8], rdx", "mov [rbp-8], rdx", "-", "stack", SLOT),
    ("mov [rbp-6], ax; mov [rbp-8], rdx", "mov [rbp-8], rdx", "-", "stack", SLOT),
    ("mov [rbp-8], rax; mov rcx, [rbp-8]; mov [rbp-8], rdx", "mov rcx, rax; mov [rbp-8], rdx", "rcx", "stack", SLOT),
    ("mov [rbp-8], rax; mov [rbx], rdx; mov rcx, [rbp-8]", "mov [rbp-8], rax; mov [rbx], rdx; mov rcx, rax", "rcx", "private", SLOT),
    ("mov [rbp-8], rax; mov rdx, [rbx]; mov rcx, [rbp-8]", "mov [rbp-8], rax; mov rdx, [rbx]; mov rcx, rax", "rcx rdx", "private", SLOT),
    # a promise for all memory
    ("mov [rdi], eax; mov [rdi+4], ecx", "mov [rdi+4], ecx; mov [rdi], eax", "-", "plain", ()),
    ("mov [rdi], al; mov [rdi+1], cl; mov dx, [rdi]", "mov [rdi], al; mov [rdi+1], cl; movzx edx, al; mov dh, cl", "dx", "plain", ()),
    ("mov eax, [rdi]; mov ecx, [rdi]", "mov eax, [rdi]; mov ecx, eax", "rax rcx", "plain", ()),
    # divisions and jumps
    ("xor edx, edx; div ecx; mov ebx, eax", "xor edx, edx; div ecx; mov ebx, eax", "rax rbx rdx", "strict", ()),
    ("mov esi, eax; xor edx, edx; div ecx; mov eax, esi; xor edx, edx; div ecx", "mov esi, eax; xor edx, edx; div ecx", "rax rsi rdx", "strict", ()),
    ("sub eax, ecx; test eax, eax; jne L", "sub eax, ecx; jne L", "rax", "strict", ()),
    ("cmp eax, ecx; setl al; movzx eax, al; test eax, eax; jne L", "cmp eax, ecx; setl al; movzx eax, al; cmp eax, 1; jae L", "rax", "strict", ()),
]  # fmt: skip

FORBIDDEN = [
    # left, right, live, policy, assumes, whether only the policy forbids it
    ("mov [rbp-8], rax; mov rcx, [rbp-8]", "mov [rbp-8], rax; mov rcx, rax", "rcx", "strict", SLOT, True),
    ("mov [rbp-8], rax; mov rcx, [rbp-8]", "mov [rbp-8], rax; mov rcx, rax", "rcx", "stack", (), True),
    ("mov eax, [rdi]; mov ecx, [rdi]", "mov ecx, [rdi]; mov eax, [rdi]", "rax rcx", "strict", (), True),
    ("mov [rdi], eax; mov [rdi], ecx", "mov [rdi], edx; mov [rdi], ecx", "-", "strict", (), True),
    ("mov [rdi], eax; mov [rdi+4], ecx", "mov [rdi+4], ecx; mov [rdi], eax", "-", "strict", (), True),
    ("mov [rdi], rax; shr rax, 32", "mov [rdi], eax; shr rax, 32; mov [rdi+4], eax", "rax", "strict", (), True),
    ("mov [rbp-8], rax; mov rdx, [rbx]; mov rcx, [rbp-8]", "mov [rbp-8], rax; mov rdx, [rbx]; mov rcx, rax", "rcx rdx", "stack", SLOT, True),
    ("mov [rbp-8], rax; mov rcx, [rbx]; mov [rbp-8], rdx", "mov rcx, [rbx]; mov [rbp-8], rdx", "rcx", "stack", SLOT, None),
    ("mov [rbp-8], rax; mov [rbp-16], rcx; mov [rbp-8], rdx", "mov [rbp-16], rcx; mov [rbp-8], rdx", "-", "stack", SLOT, True),
    ("mov [rbp-8], rax; mov [rbx], rdx; mov rcx, [rbp-8]", "mov [rbp-8], rax; mov [rbx], rdx; mov rcx, rax", "rcx", "stack", SLOT, False),
    ("mov [rbp-8], eax; mov rcx, [rbp-8]", "mov [rbp-8], eax; mov ecx, eax", "rcx", "stack", SLOT, False),
    ("mov [rbp-8], rax; mov [rbp+rcx], rdx; mov rcx, [rbp-8]", "mov [rbp-8], rax; mov [rbp+rcx], rdx; mov rcx, rax", "rcx", "private", SLOT, False),
    ("mov [rdi], eax; mov [rsi], ecx", "mov [rsi], ecx; mov [rdi], eax", "-", "plain", (), False),
    ("movzx eax, word ptr [rdi]", "mov eax, [rdi]", "ax", "plain", (), False),
    ("mov eax, [rdi]", "mov eax, [rdi]; mov [rdi], eax", "rax", "plain", (), None),
    ("mov eax, [rdi]", "mov eax, [rdi]; mov ecx, [rdi+4]", "rax", "plain", (), False),
    ("push rax; mov ecx, [rbx]; pop rdx", "mov rdx, rax; mov ecx, [rbx]", "rcx rdx", "strict", BELOW[:1], False),
    ("push rax; mov ecx, [rbx]; pop rdx", "mov rdx, rax; mov ecx, [rbx]", "rcx rdx", "strict", BELOW[1:], False),
    ("push rax; mov ecx, [rsp+rsi]; pop rdx", "mov rdx, rax; mov ecx, [rsp+rsi-8]", "rcx rdx", "strict", BELOW, None),
    ("push rax; pop rdx", "mov [rsp-8], rax; mov rdx, [rsp-8]", "rdx", "strict", (), None),
    ("push rax; mov [rsp+4], rcx; pop rdx", "mov rdx, rax; mov [rsp-4], rcx", "rdx", "strict", BELOW, None),
    ("push rax; pop rdx; mov rdx, rax", "mov rdx, rax; sub rsp, 8", "rdx", "strict", BELOW, False),
    ("xor edx, edx; div ecx", "xor edx, edx; mov eax, 1", "rdx", "plain", (), False),
    ("mov edx, 0; mov eax, 1", "mov edx, 0; mov eax, 1; div ecx; mov edx, 0; mov eax, 1", "rax rdx", "plain", (), False),
    ("div ecx; div ecx", "div ecx", "-", "strict", (), False),
    ("mov [rdi], eax; div ecx", "div ecx; mov [rdi], esi", "-", "plain", (), None),
    ("div ecx", "idiv ecx", "-", "strict", (), None),
    ("div ecx; idiv ecx", "div ecx", "-", "strict", (), None),
    ("push rax; mov ecx, [rbx]", "lea rsp, [rsp-8]; mov ecx, [rbx]", "rcx", "strict", BELOW, None),
    ("push rax; push rcx; pop rdx", "push rcx; mov rdx, rcx", "rdx", "strict", ("private(rsp-16)", "dead(rsp-16)"), None),
    ("sub eax, ecx; test eax, eax; jne L", "sub eax, ecx; je L", "rax", "strict", (), False),
    ("test eax, eax; jne L", "test eax, eax; jne M", "rax", "strict", (), None),
    ("test eax, eax; jne L", "test eax, eax", "rax", "strict", (), None),
    ("lea rax, [rip+0x4000]", "mov eax, 0x4000", "rax", "strict", (), False),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "live", "policy", "assumes"), ALLOWED)
def test_what_a_policy_allows_is_proved_and_replayed(prover, oracle, left, right, live, policy, assumes):
    """Both solvers prove it on their encodings, and the emulator sees no difference for pointers that overlap in any way."""
    found = verdict(prover, left, right, live, policy, assumes)
    assert isinstance(found, Proved), found
    assert [(p.encoding, p.solver) for p in found.proofs] == [FIRST, SECOND]
    seen = replay_rule(oracle, window(left), window(right), found.preserves & found.always_defined, read_conditions(policy, assumes))
    assert seen.runs > 0
    assert not seen.differing


@pytest.mark.parametrize(("left", "right", "live", "policy", "assumes", "only_policy"), FORBIDDEN)
def test_what_a_policy_forbids_is_refuted(prover, oracle, left, right, live, policy, assumes, only_policy):
    """It is refuted by a state that the emulator confirms, or by the policy where no state of one thread shows it."""
    found = verdict(prover, left, right, live, policy, assumes)
    assert isinstance(found, Refuted), found
    if only_policy is not None:
        assert found.by_policy == only_policy, found
    if found.counterexample is not None:
        assert replay_counterexample(oracle, window(left), window(right), found.counterexample).differing


@pytest.mark.parametrize(("left", "right", "live", "policy", "assumes", "only_policy"), FORBIDDEN)
def test_a_refutation_needs_no_state(prover, left, right, live, policy, assumes, only_policy):
    """Who wants no state gets the same verdict, and never one that no memory has."""
    found = verdict(prover, left, right, live, policy, assumes, wants_state=False)
    assert isinstance(found, Refuted)
    accesses = any("memory" in features(i) or "rip" in features(i) for i in (*window(left), *window(right)))
    assert found.counterexample is None or not accesses


def test_every_window_stands_for_itself(prover):
    """Under every policy a window may replace itself."""
    for policy in ("strict", "stack", "private", "plain"):
        for left, *_ in (*ALLOWED, *FORBIDDEN):
            assert isinstance(verdict(prover, left, left, "-", policy), Proved), (policy, left)


@pytest.mark.parametrize("solver", ["bitwuzla", "z3"])
@pytest.mark.parametrize("encoding", ["functional", "relational"])
def test_either_solver_on_either_encoding_proves(solver, encoding):
    """All that is allowed is proved by each solver on each encoding alone."""
    alone = Prover((10_000,), (encoding, solver), None)
    for left, right, live, policy, assumes in ALLOWED:
        assert isinstance(verdict(alone, left, right, live, policy, assumes), Proved), (left, right)


@pytest.mark.parametrize("opinion", [FIRST, SECOND])
def test_no_proof_is_vacuous(opinion):
    """What a query assumes of constants and of memory can be true: a proof is never one from a contradiction."""
    alone = Prover((5000,), opinion, None)
    for left, right, live, policy, assumes in ALLOWED:
        query, _ = alone.query(window(left), window(right), mask(live), read_conditions(policy, assumes))
        assert isinstance(ask(query.environment, query.always, [], opinion[1], 5000), Sat), (left, right)


def test_two_accesses_take_no_longer_than_seconds(prover):
    """No query on a window of up to four instructions with two memory operands takes five seconds."""
    for left, right, live, policy, assumes in ALLOWED:
        assert verdict(prover, left, right, live, policy, assumes).ms < 5000


def test_what_is_not_live_need_not_be_stored(prover):
    """Where memory is dead behind the window, stored values do not count; addresses and order still do."""
    pair = "mov [rdi], eax", "mov [rdi], ecx"
    assert isinstance(verdict(prover, *pair), Refuted)
    assert isinstance(verdict(prover, *pair, is_memory_live=False), Proved)
    assert isinstance(verdict(prover, "mov [rdi], eax", "mov [rsi], eax", is_memory_live=False), Refuted)


@pytest.mark.parametrize(
    ("left", "right", "march", "kind"),
    [
        ("mov eax, [rdi]; bswap eax", "movbe eax, [rdi]", "x86-64", Refuted),
        ("mov eax, [rdi]; bswap eax", "movbe eax, [rdi]", "x86-64-v3", Proved),
        ("andn ecx, eax, eax; mov eax, [rdi]", "xor ecx, ecx; mov eax, [rdi]", "x86-64", Proved),
        ("andn ecx, edx, esi; not eax; and eax, edi", "andn ecx, edx, esi; andn eax, eax, edi", "x86-64", Proved),
        ("lzcnt ecx, edx; popcnt eax, edx", "lzcnt ecx, edx; popcnt eax, edx", "x86-64", Proved),
        ("lzcnt ecx, edx; mov eax, 0", "lzcnt ecx, edx; andn eax, edx, edx", "x86-64", Refuted),
        ("tzcnt eax, ecx", "tzcnt eax, ecx", "x86-64-v2", Undecided),
        ("tzcnt eax, ecx", "tzcnt eax, ecx", "x86-64-v3", Proved),
    ],
)
def test_a_replacement_needs_a_processor_that_is_there(prover, left, right, march, kind):
    """A replacement uses what the level has or the pattern shows; tzcnt shows nothing, since it never traps."""
    assert isinstance(verdict(prover, left, right, "eax ecx", march=march), kind)


_LOWERED = "sub rsp, 8; mov qword ptr [rsp+c0], r0; lea rsp, [rsp+8]", "mov qword ptr [rsp+(c0 + -8)], r0"


def test_symbolic_offsets_from_the_stack_pointer(prover):
    """Offsets add up whatever they are, but what the pattern has above rsp stays there for all of them."""
    folded = prover.prove(seq("lea r0, [rsp+c0]; mov r1, qword ptr [r0+c1]"), seq("mov r1, qword ptr [rsp+(c0 + c1)]"), mask("r1"))
    assert isinstance(folded, Proved)
    lowered = prover.prove(*map(seq, _LOWERED), 0)
    assert isinstance(lowered, Refuted)
    assert lowered.counterexample is None
    higher = "sub rsp, 8; mov qword ptr [rsp+(c0 + 8)], r0; lea rsp, [rsp+8]"
    assert isinstance(prover.prove(seq("mov qword ptr [rsp+c0], r0"), seq(higher), 0, scratch=mask("rsp")), Proved)


def test_a_symbolic_offset_may_reach_what_was_pushed(prover):
    """Where an offset from rsp is a symbol, nothing is known to be private below rsp."""
    sides = "push r0; mov r1, qword ptr [rsp+c0]; pop r2", "mov r2, r0; mov r1, qword ptr [rsp+(c0 + -8)]"
    assert isinstance(prover.prove(*map(seq, sides), mask("r1 r2"), conditions=read_conditions("strict", BELOW)), Refuted)


def test_without_the_check_of_offsets_something_wrong_is_proved(monkeypatch):
    """The solver alone keeps a symbolic offset from leading below rsp."""
    monkeypatch.setattr(query_module, "_falls_below", lambda *_: iter(()))
    assert isinstance(Prover((5000,), FIRST, None).prove(*map(seq, _LOWERED), 0), Proved)


# Mutants: for every condition there is a claim whose verdict depends on it.


def _addresses_unchecked(patch):
    """The common trace compares no addresses."""
    real = query_module._trace_differs
    patch.setattr(query_module, "_trace_differs", lambda *args: ([], real(*args)[1]))
    return "mov [rdi], eax", "mov [rsi], eax", "-", "strict", ()


def _values_unchecked(patch):
    """The common trace compares no stored values."""
    real = query_module._trace_differs
    patch.setattr(query_module, "_trace_differs", lambda *args: (real(*args)[0], []))
    return "mov [rdi], eax; mov [rdi], ecx", "mov [rdi], edx; mov [rdi], ecx", "-", "strict", ()


def _shapes_unchecked(patch):
    """A load may be as wide as it likes."""
    patch.setattr(accesses_module.Access, "shape", property(lambda a: a.kind))
    return "movzx eax, byte ptr [rdi]; and eax, 0", "mov eax, dword ptr [rdi]; and eax, 0", "rax", "strict", ()


def _loads_remembered(patch):
    """Loads of the common trace see memory as it was, so that two of one location are equal."""
    real = Terms.symbol
    patch.setattr(Terms, "symbol", lambda t, name, width: real(t, f"load_{width}" if name.startswith("load") else name, width))
    return "mov eax, [rdi]; mov ecx, [rdi]", "mov ecx, [rdi]; mov eax, [rdi]", "rax rcx", "strict", ()


def _footprint_unchecked(patch):
    """A replacement may access what it likes in a space of its own."""
    patch.setattr(query_module, "_faults", lambda *_: iter(()))
    return "movzx eax, word ptr [rdi]", "mov eax, [rdi]", "ax", "plain", ()


def _content_unchecked(patch):
    """What memory holds in the end is not compared."""
    patch.setattr(query_module, "_content_differs", lambda *_: iter(()))
    return "mov [rdi], eax; mov [rsi], ecx", "mov [rsi], ecx; mov [rdi], eax", "-", "plain", ()


def _aliasing_lost(patch):
    """Pointers with different bases never meet."""
    from ruledb.proof import memory as memory_module

    real = memory_module.distance
    patch.setattr(memory_module, "distance", lambda a, b: (1 << 63) if real(a, b) is None else real(a, b))
    return "mov [rdi], eax; mov [rsi], ecx; mov edx, [rdi]", "mov [rdi], eax; mov [rsi], ecx; mov edx, eax", "rdx", "plain", ()


def _byte_order(patch):
    """Loads put the highest byte first."""
    from ruledb.proof.memory import byte_at

    swapped = lambda t, m, stores, a, n: t.concat(*(m.byte(stores, byte_at(t, a, i)) for i in range(n)))  # noqa: E731  # one of a table of mistakes
    patch.setattr(query_module, "load", swapped)
    return "mov [rdi], eax; mov ecx, [rdi]", "mov [rdi], eax; mov ecx, eax; bswap ecx", "rcx", "plain", ()


def _store_order(patch):
    """The oldest of a side's stores wins."""
    real = query_module.stores_of
    patch.setattr(query_module, "stores_of", lambda *args: real(*args)[::-1])
    return "mov [rdi], eax; mov [rdi], ecx", "mov [rdi], eax", "-", "plain", ()


def _cover_unchecked(patch):
    """What an access takes from an earlier one need not be covered by it."""
    patch.setattr(query_module, "covers", lambda t, *_: t.const(1, 1))
    return "mov [rbp-8], rax; mov [rbp-16], rdx", "mov [rbp-16], rdx", "-", "stack", SLOT


def _loads_between(patch):
    """A load between two accesses of a slot orders nothing."""
    real = accesses_module._sources

    def sources(accesses, spaces, common, kept, i):
        if accesses[i].kind is Kind.LOAD:
            yield from real(accesses, spaces, common, [j for j in kept if accesses[j].kind is not Kind.LOAD], i)
        else:
            yield from real(accesses, spaces, common, kept, i)

    patch.setattr(accesses_module, "_sources", sources)
    left = "mov [rbp-8], rax; mov rdx, [rbx]; mov rcx, [rbp-8]"
    return left, "mov [rbp-8], rax; mov rdx, [rbx]; mov rcx, rax", "rcx rdx", "stack", SLOT


def _stores_between(patch):
    """A store between a store and the one that covers it does not matter."""
    real = accesses_module._sources

    def sources(accesses, spaces, common, kept, i):
        later = [j for j in common if j > i and spaces[i] == spaces[j] == "slot" and accesses[j].kind is Kind.STORE]
        yield from later if accesses[i].kind is Kind.STORE else real(accesses, spaces, common, kept, i)

    patch.setattr(accesses_module, "_sources", sources)
    return "mov [rbp-8], rax; mov [rbp-16], rcx; mov [rbp-8], rdx", "mov [rbp-16], rcx; mov [rbp-8], rdx", "-", "stack", SLOT


def _stack_for_all(patch):
    """Every register addresses the frame."""
    patch.setattr(accesses_module._Spaces, "of", lambda _, a: "shared" if a.address is None else "slot")
    return "mov [rdi], rax; mov rcx, [rdi]", "mov [rdi], rax; mov rcx, rax", "rcx", "stack", ()


def _indexes_into_slots(patch):
    """An index from the frame's base reaches no private slot."""
    patch.setattr(accesses_module._Spaces, "_is_unclear", lambda *_: False)
    left = "mov [rbp-8], rax; mov [rbp+rcx], rdx; mov rcx, [rbp-8]"
    return left, "mov [rbp-8], rax; mov [rbp+rcx], rdx; mov rcx, rax", "rcx", "private", SLOT


def _below_rsp(patch):
    """A replacement may use what lies below rsp."""
    patch.setattr(prover_module, "below_stack", lambda *_: False)
    return "push rax; pop rdx", "mov [rsp-8], rax; mov rdx, [rsp-8]", "rdx", "strict", ()


def _dead_without_saying(patch):
    """What lies below rsp is dead whatever is assumed."""
    real = prover_module._Claim
    patch.setattr(prover_module, "_Claim", lambda *args: real(*args[:3], frozenset({"below"}), *args[4:]))
    return "push rax; pop rdx", "mov rdx, rax", "rdx", "strict", BELOW[:1]


def _left_on_the_stack(patch):
    """What a window leaves on the stack is below it."""
    real = Prover._accesses
    patch.setattr(Prover, "_accesses", lambda self, side: (real(self, side)[0], True))
    return "push rax; mov ecx, [rbx]", "lea rsp, [rsp-8]; mov ecx, [rbx]", "rcx", "strict", BELOW


def _signs_of_divisions(patch):
    """Divisions of signed and of unsigned numbers trap alike."""
    patch.setattr(accesses_module.Access, "shape", property(lambda a: (a.address is None, a.n_bytes)))
    return "div ecx", "idiv ecx", "-", "strict", ()


def _straddling(patch):
    """An access that lies half below rsp is no trouble."""
    patch.setattr(accesses_module._Spaces, "_straddles", lambda *_: False)
    patch.setattr(prover_module, "below_stack", lambda *_: False)
    return "push rax; mov [rsp+4], rcx; pop rdx", "mov rdx, rax; mov [rsp-4], rcx", "rdx", "strict", BELOW


def _stack_pointer_free(patch):
    """The stack pointer need not agree."""
    patch.setattr(prover_module, "_ALWAYS", MEMORY | ACCESSES | FAULTS | TAKEN)
    return "push rax; pop rdx", "mov rdx, rax; lea rsp, [rsp+8]", "rdx", "strict", BELOW


def _jump_unchecked(patch):
    """Whether the jump is taken is not compared."""
    patch.setattr(prover_module, "_ALWAYS", prover_module._ALWAYS & ~TAKEN)
    return "test eax, eax; jne L", "test eax, eax; je L", "-", "strict", ()


def _target_unchecked(patch):
    """Where the jump goes is not compared."""
    patch.setattr("ruledb.proof.admission._jumps", lambda _: [])
    return "test eax, eax; jne L", "test eax, eax; jne M", "-", "strict", ()


def _divisions_free(patch):
    """Divisions have no place among the accesses."""
    real = symbolic.run

    def run(*args, **options):
        state = real(*args, **options)
        return symbolic.replace(state, accesses=tuple(a for a in state.accesses if a.address is not None))

    patch.setattr(prover_module, "run", run)
    patch.setattr(query_module, "run", run)
    return "mov edx, 0; mov eax, 1", "mov edx, 0; mov eax, 1; div ecx; mov edx, 0; mov eax, 1", "rax rdx", "strict", ()


def _operands_of_divisions(patch):
    """A division may go if any other stands before it."""
    real = query_module._trace_differs
    patch.setattr(query_module, "_trace_differs", lambda t, left, right, plan: ([], real(t, left, right, plan)[1]))
    return "div ecx; div ecx", "div ecx", "-", "strict", ()


def _image_known(patch):
    """Programs are loaded at 0."""
    real = Terms.symbol
    patch.setattr(Terms, "symbol", lambda t, name, width: t.const(0, 64) if name == symbolic.IMAGE else real(t, name, width))
    return "lea rax, [rip+0x4000]", "mov eax, 0x4000", "rax", "strict", ()


def _level_unchecked(patch):
    """Every processor has everything."""
    patch.setattr("ruledb.proof.admission._needs", lambda _: frozenset())
    return "mov eax, [rdi]; bswap eax", "movbe eax, [rdi]", "rax", "strict", ()


MISTAKES = [
    _addresses_unchecked, _values_unchecked, _shapes_unchecked, _loads_remembered, _footprint_unchecked, _content_unchecked, _aliasing_lost,
    _byte_order, _store_order, _cover_unchecked, _loads_between, _stores_between, _stack_for_all, _indexes_into_slots, _below_rsp,
    _dead_without_saying, _left_on_the_stack, _signs_of_divisions, _straddling, _stack_pointer_free, _jump_unchecked, _target_unchecked, _divisions_free, _operands_of_divisions,
    _image_known, _level_unchecked,
]  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_without_a_condition_something_wrong_is_proved(monkeypatch, mistake):
    """For every condition there is a wrong claim that only it keeps from being proved."""
    alone = (5000,), FIRST, None
    with monkeypatch.context() as patch:
        claim = mistake(patch)
        assert isinstance(verdict(Prover(*alone), *claim), Proved)
    assert isinstance(verdict(Prover(*alone), *claim), Refuted)


@pytest.mark.parametrize(
    ("left", "right", "policy", "differs"),
    [
        ("mov [rdi], eax; mov [rsi], ecx", "mov [rsi], ecx; mov [rdi], eax", "plain", MEMORY),
        ("mov [rdi], eax; mov ecx, [rdi]", "mov [rdi], eax; mov ecx, eax", "strict", ACCESSES),
        ("mov eax, [rdi]; mov ecx, [rdi+4]", "mov ecx, [rdi+4]; mov eax, [rdi]", "strict", ACCESSES),
        ("mov [rdi], rax", "mov [rdi], eax", "plain", MEMORY),
        ("mov al, [rdi]", "mov al, [rdi]; mov [rdi], al", "strict", ACCESSES),
        ("test eax, eax; jne L", "test eax, eax; js L", "strict", TAKEN),
        ("mov eax, ecx", "mov eax, ecx; div ecx", "strict", FAULTS),
        ("mov al, [rdi]", "mov al, [rdi]; mov ah, [rdi+0x2000]", "plain", FAULTS),
    ],
)
def test_replay_alone_sees_what_is_wrong_with_memory(oracle, left, right, policy, differs):
    """The emulator contradicts a proof that would claim too much about bytes, accesses, faults or jumps."""
    assert (
        replay_rule(oracle, code(left) if "L" not in left else window(left), window(right), 0, read_conditions(policy, ())).differing
        & differs
    )
