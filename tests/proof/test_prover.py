"""The prover: what it proves, what it refutes, and that it never takes silence, disagreement or a mistake for a proof."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from asm import mask, seq

from ruledb.machine.instruction import sequence_text
from ruledb.machine.registers import ALL_FLAGS, FLAGS, families_of, family_mask, mask_text
from ruledb.proof import prover as prover_module
from ruledb.proof import query as query_module
from ruledb.proof import solvers
from ruledb.proof.prover import FIRST, SECOND, Proved, Prover, Refuted, Undecided, foreign_writes, written_families
from ruledb.proof.query import ENCODINGS, build, query_digest, query_text
from ruledb.proof.replay import replay_counterexample, replay_rule
from ruledb.proof.solvers import Sat, Unknown, Unsat, ask, new_environment
from ruledb.semantics.terms import Terms

EQUIVALENT = [
    ("mov r0d, 0", "xor r0d, r0d", "r0"),
    ("add r0d, 1", "inc r0d", "r0 PF AF ZF SF OF"),
    ("mov r0, r1; mov r1, r0", "mov r0, r1", "r0 r1 all"),
    ("lea r0, [r0+c0]", "add r0, c0", "r0"),
    ("add r0, c0", "sub r0, -c0", "r0 ZF SF"),
    ("add r0d, c0; mov r1d, r0d", "lea r1d, [r0+c0]", "r1"),
    ("imul r0d, r1d, 5", "lea r0d, [r1+r1*4]", "r0"),
    ("imul r0d, r0d, -1", "neg r0d", "r0"),
    ("and r0d, 255", "movzx r0d, r0b", "r0"),
    ("shl r0d, 1", "add r0d, r0d", "r0 CF ZF SF PF OF"),
    ("cmp r0d, 0", "test r0d, r0d", "CF PF ZF SF OF"),
    ("not r0; add r0, 1", "neg r0", "r0"),
    ("xor r0d, r1d; xor r1d, r0d; xor r0d, r1d", "xchg r0d, r1d", "r0 r1"),
    ("cmp r0d, r1d; setb r2b; movzx r2d, r2b; neg r2d", "cmp r0d, r1d; sbb r2d, r2d", "r2"),
    ("mov r0d, c0; add r0d, c1", "mov r0d, (c0 + c1)", "r0"),
    ("mov eax, r0d; cdq", "mov eax, r0d; mov edx, eax; sar edx, 31", "rax rdx"),
    ("shl r0d, cl; shl r0d, cl", "shl r0d, cl; shl r0d, cl", "r0 CF"),
]

DIFFERENT = [
    ("add r0d, 1", "inc r0d", "r0 CF"),
    ("mov r0, r1", "mov r0d, r1d", "r0"),
    ("mov r0d, r1d", "mov r0, r1", "r0"),
    ("sub r0d, r1d", "cmp r0d, r1d", "r0 ZF"),
    ("lea r0d, [r1+r1*4]", "imul r0d, r1d, 3", "r0d"),
    ("movsx r0d, r0b", "movzx r0d, r0b", "r0d"),
    ("sar r0d, 1", "shr r0d, 1", "r0d"),
    ("mov r0b, 0", "xor r0d, r0d", "r0w"),
    ("cmp r0, c0; sete r1b", "cmp r0d, c0; sete r1b", "r1b"),
    ("add r0d, c0", "add r0d, (c0 + 1)", "r0d"),
    ("setb r0b", "setbe r0b", "r0b"),
    ("shl r0d, cl", "mov r0d, 0", "r0d"),
]


def verdict(prover, left, right, live, **options):
    """What the prover says of texts; all that is not required is plausible."""
    return prover.prove(seq(left), seq(right), mask(live), **options)


@pytest.mark.parametrize(("left", "right", "live"), EQUIVALENT)
def test_what_is_equivalent_is_proved_by_both_solvers(prover, oracle, left, right, live):
    """A true claim is proved twice, each time by another solver on another encoding, and the emulator agrees."""
    found = verdict(prover, left, right, live)
    assert isinstance(found, Proved), found
    assert [(p.encoding, p.solver) for p in found.proofs] == [FIRST, SECOND]
    assert len({p.query_digest for p in found.proofs}) == 2
    assert not mask(live) & ~found.preserves
    seen = replay_rule(oracle, seq(left), seq(right), found.preserves & found.always_defined)
    assert seen.runs > 0
    assert not seen.differing


@pytest.mark.parametrize("solver", ["bitwuzla", "z3"])
@pytest.mark.parametrize("encoding", sorted(ENCODINGS))
def test_solvers_and_encodings_agree(solver, encoding):
    """Either solver on either encoding comes to the same verdict, and to the same maximal mask."""
    alone = Prover((5000,), (encoding, solver), None)
    both = Prover((5000,))
    for left, right, live in (*EQUIVALENT, *DIFFERENT):
        one, other = verdict(alone, left, right, live), verdict(both, left, right, live)
        assert type(one) is type(other), (left, right)
        if isinstance(one, Proved):
            assert one.preserves == other.preserves, (left, right)


@pytest.mark.parametrize(("left", "right", "live"), DIFFERENT)
def test_what_is_different_is_refuted(prover, oracle, left, right, live):
    """A false claim is refuted by a state on which the emulator, too, sees a required location differ."""
    found = verdict(prover, left, right, live)
    assert isinstance(found, Refuted)
    example = found.counterexample
    assert example.locations & mask(live)
    assert replay_counterexample(oracle, seq(left), seq(right), replace(example, locations=example.locations & mask(live))).differing


@pytest.mark.parametrize(
    ("left", "right", "dead"),
    [
        ("add r0d, 1", "inc r0d", "CF"),
        ("add r0d, c0", "lea r0d, [r0+c0]", "CF PF AF ZF SF OF"),
        ("mov r0, r1", "mov r0d, r1d", "r0[63:32]"),
        ("mov r0d, r0d", "", "r0[63:32]"),
        ("mov r0b, r1b", "mov r0d, r1d", "r0[15:8] r0[31:16] r0[63:32]"),
        ("mov r0h, 0", "and r0w, 255", "CF PF AF ZF SF OF"),
        ("mov r0, 0", "xor r0d, r0d", "CF PF AF ZF SF OF"),
        ("cmp r0d, 0", "test r0d, r0d", "AF"),
        ("and r0d, r0d", "test r0d, r0d", "r0[63:32]"),
        ("mov r0d, r1d; mov r2d, r0d", "mov r2d, r1d", "r0"),
        ("neg r0d; neg r0d", "test r0d, r0d", "r0[63:32] CF AF OF"),
    ],
)
def test_the_preserved_mask_is_maximal(prover, left, right, dead):
    """Of what either side touches exactly the lanes and flags that may differ are left out."""
    found = verdict(prover, left, right, "-")
    touched = sum(map(family_mask, families_of(found.preserves | mask("r0")))) | ALL_FLAGS
    assert mask_text(touched & ~found.preserves) == mask_text(mask(dead))


def test_only_what_is_plausible_is_asked_beyond_what_is_required(prover):
    """The mask holds what was required and what was plausible, no more."""
    found = verdict(prover, "mov r0, 0", "xor r0d, r0d", "r0d", plausible=mask("r0 OF"))
    assert mask_text(found.preserves) == "r0"
    assert mask_text(verdict(prover, "mov r0, 0", "xor r0d, r0d", "r0d", plausible=0).preserves) == "r0d"


def test_foreign_registers_are_scratch(prover):
    """A register that the pattern does not write may be written only where it is named as scratch."""
    left, right = "mov r0d, 5", "mov r1d, 5; mov r0d, r1d"
    found = verdict(prover, left, right, "r0")
    assert isinstance(found, Refuted)
    assert found.counterexample is None
    assert "scratch" in found.reason
    assert "r1" in found.reason
    assert isinstance(verdict(prover, left, right, "r0", scratch=mask("r1")), Proved)
    assert isinstance(verdict(prover, "mov eax, 5", "mov esp, 5; mov eax, 5", "rax"), Refuted)
    assert foreign_writes(seq(left), seq(left)) == 0
    assert written_families(seq("mul ebx; cmp ecx, edx")) == {0, 2}


@pytest.mark.parametrize(
    ("left", "right", "live", "kind"),
    [
        ("shl r0d, 2", "add r0d, r0d; add r0d, r0d", "r0 OF", Proved),
        ("add r0d, r0d; add r0d, r0d", "shl r0d, 2", "r0 OF", Refuted),
        ("shl r0d, 2", "shl r0d, 2", "r0 OF", Proved),
        ("and r0d, r0d", "or r0d, r0d", "r0d AF", Proved),
        ("cmp r0d, 0", "test r0d, r0d", "AF", Refuted),
        ("test r0d, r0d", "cmp r0d, 0", "AF", Proved),
        ("imul r0d, r0d, 2", "add r0d, r0d", "r0 ZF SF PF AF", Proved),
        ("add r0d, r0d", "imul r0d, r0d, 2", "r0 ZF", Refuted),
        ("imul r0d, r0d, 2", "add r0d, r0d", "CF", Refuted),
        ("bsf r0, r1", "bsf r0, r1", "r0", Refuted),
        ("bsf r0, r1", "bsf r0, r1", "ZF", Proved),
        ("mov r0, r2; bsf r0, r1; cmove r0, r2", "bsf r0, r1; cmove r0, r2", "r0", Proved),
        ("bsf r0, r1; cmove r0, r2", "bsf r0, r1; cmove r0, r2", "r0", Proved),
        ("shl r0d, cl", "shl r0d, cl", "r0 CF ZF", Proved),
        ("shl r0b, cl", "shl r0b, cl", "CF", Proved),
        ("bsf r0, r1; setc r2b", "bsf r0, r1; setc r2b", "r2b", Refuted),
    ],
)
def test_a_replacement_may_define_what_the_pattern_leaves_open(prover, left, right, live, kind):
    """Undefined values of the pattern are free; those of the replacement agree with nothing that the pattern defines."""
    assert isinstance(verdict(prover, left, right, live), kind)


@pytest.mark.parametrize(
    ("left", "right", "live", "kind"),
    [
        ("add r0b, c0; add r0, c0", "add r0b, c0; add r0, c0", "r0", Proved),
        # c0 is an 8-bit constant in the first pattern, so its extension is the value itself; in the second it has 32 bits.
        ("mov r0, c0; mov r1b, c0", "mov r1b, c0; mov r0, r0; mov r0, c0", "r0 r1", Proved),
        ("mov r1b, c0; mov r0, c0", "mov r0b, c0; movsx r0, r0b; mov r1b, c0", "r0 r1", Proved),
        ("mov r1d, c0; mov r0, c0", "mov r0b, c0; movsx r0, r0b; mov r1d, c0", "r0 r1", Refuted),
        ("mov r1d, c0; mov r0, c0", "mov r1, c0; mov r0, c0", "r0 r1d", Proved),
        ("mov r0, c0", "mov r0d, c0", "r0", Refuted),
        ("add r0, c0; shl r1, c0", "lea r0, [r0+c0]; shl r1, c0", "r0 r1", Proved),
        ("and r0d, c0; shl r1, c0", "movsx r2, r0b; and r0d, c0; shl r1, c0", "r0 r1", Refuted),
        ("and r1d, c0; shl r0, c0", "and r1, c0; shl r0, c0", "r0 r1", Refuted),
    ],
)
def test_constants_stand_for_their_domains(prover, left, right, live, kind):
    """A claim about constants of 8 bits holds for those values alone; the same of 32 bits may not."""
    assert isinstance(verdict(prover, left, right, live), kind)


HARD = ("add r0, r1; imul r0, r2; imul r0, r0", "mov r3, r0; and r3, r1; xor r0, r1; lea r0, [r0+r3*2]; imul r0, r2; imul r0, r0", "r0")
"""a + b = (a ^ b) + 2 · (a & b) below two multiplications: beyond any solver in a millisecond."""


def test_a_solver_that_needs_longer_leaves_it_open():
    """A time limit never makes a proof."""
    found = verdict(Prover((1,)), *HARD, plausible=0, scratch=mask("r3"))
    assert isinstance(found, Undecided)
    assert found.reason == "timeout"


@pytest.mark.parametrize("name", ["bitwuzla", "z3"])
@pytest.mark.parametrize("failure", ["raises", "unknown", "no memory"])
def test_a_solver_that_fails_leaves_it_open(monkeypatch, name, failure):
    """Whatever goes wrong in either solver, the verdict is undecided and says why."""

    def failing(environment, formula, terms, solver, limit_ms):
        if solver != name:
            return ask(environment, formula, terms, solver, limit_ms)
        return {
            "raises": Unknown(0.0, "error: Z3Exception: broken"),
            "unknown": Unknown(0.0, "timeout"),
            "no memory": Unknown(0.0, "error: MemoryError: "),
        }[failure]

    monkeypatch.setattr(prover_module, "ask", failing)
    found = verdict(Prover((100,)), "mov r0d, 0", "xor r0d, r0d", "r0")
    assert isinstance(found, Undecided)
    assert found.reason


def test_without_limits_nothing_is_proved():
    """A prover that may not ask proves nothing."""
    assert isinstance(verdict(Prover(()), "mov r0d, 0", "xor r0d, r0d", "r0"), Undecided)


def _without_zero_extension(encode):
    """An encoding in which a 32-bit write of the right side keeps the upper half."""

    def changed(t, side, name, *, is_pattern, memory):
        state, equations = encode(t, side, name, is_pattern=is_pattern, memory=memory)
        if is_pattern:
            return state, equations
        kept = {f: t.concat(t.extract(t.symbol(f"r{f}", 64), 63, 32), t.extract(v, 31, 0)) for f, v in state.registers.items()}
        return replace(state, registers=kept), equations

    return changed


def _without_flags(encode):
    """An encoding in which the right side leaves the flags alone."""

    def changed(t, side, name, *, is_pattern, memory):
        state, equations = encode(t, side, name, is_pattern=is_pattern, memory=memory)
        return (state if is_pattern else replace(state, flags={}, defined={})), equations

    return changed


@pytest.mark.parametrize(
    ("mistake", "claim"),
    [
        (_without_zero_extension, ("mov r0w, r1w; bt r0d, 0; mov r0w, r1w", "mov r0d, r1d; mov r0w, r0w", "r0[63:32]")),
        (_without_flags, ("mov r0d, 0", "xor r0d, r0d", "r0 CF")),
        (_without_flags, ("lea r0, [r0+c0]", "add r0, c0", "r0 ZF")),
    ],
)
def test_a_wrong_first_encoding_is_caught_by_the_second(monkeypatch, mistake, claim):
    """A claim that only a mistaken encoding proves is a disagreement, never a proof."""
    assert isinstance(verdict(Prover(), *claim), Refuted)
    monkeypatch.setitem(ENCODINGS, "functional", mistake(ENCODINGS["functional"]))
    assert isinstance(verdict(Prover((1000,), FIRST, None), *claim), Proved)
    found = verdict(Prover(), *claim, plausible=0)
    assert isinstance(found, Undecided)
    assert "disagree" in found.reason


def _no_domains(monkeypatch):
    """No limits on constants: claims about short ones fail."""
    monkeypatch.setattr(query_module, "_limits", lambda *_: [])
    return ("mov r1b, c0; mov r0, c0", "mov r0b, c0; movsx r0, r0b; mov r1b, c0", "r0"), Refuted


def _low_lanes_only(monkeypatch):
    """Only the low 32 bits are compared."""
    monkeypatch.setattr(query_module, "lane_bits", ((0, 8), (8, 8), (16, 16)))
    return ("mov r0, r1", "mov r0d, r1d", "r0"), Proved


def _everything_defined(monkeypatch):
    """What the pattern leaves undefined must be matched."""
    run = query_module.run

    def changed(*args, **options):
        return replace(run(*args, **options), defined={})

    monkeypatch.setattr(query_module, "run", changed)
    return ("test r0d, r0d", "cmp r0d, 0", "AF"), Refuted


def _nothing_undefined(monkeypatch):
    """Undefined values are zero: a replacement may rely on them."""
    monkeypatch.setattr(Terms, "undefined", lambda self, _prefix, _number, width: self.const(0, width))
    return ("xor r0d, r0d; test r0d, r0d; sub r0d, r0d", "xor r0d, r0d; test r0d, r0d", "AF r0d"), Proved


@pytest.mark.parametrize("mistake", [_no_domains, _low_lanes_only, _everything_defined, _nothing_undefined])
def test_mistakes_of_the_query_change_a_verdict(monkeypatch, mistake):
    """For every part of the query there is a claim whose verdict depends on it."""
    with monkeypatch.context() as patched:
        claim, wrong = mistake(patched)
        assert isinstance(verdict(Prover(), *claim), wrong)
    assert not isinstance(verdict(Prover(), *claim), wrong)


def test_replay_contradicts_a_wrong_proof(oracle):
    """The emulator alone sees what a mistaken proof claims."""
    seen = replay_rule(oracle, seq("mov r0, r1"), seq("mov r0d, r1d"), mask("r0"))
    assert mask_text(seen.differing) == "rbx[63:32]"
    assert seen.left != seen.right
    assert not replay_rule(oracle, seq("mov r0, r1"), seq("mov r0d, r1d"), mask("r0d")).differing


def test_replay_says_where_nothing_could_run(oracle):
    """Constants that one side cannot encode are left out; where none is left, no run is claimed."""
    assert replay_rule(oracle, seq("mov r0, c0"), seq("add r0, (c0 + 0x7000000000)"), mask("r0")).runs == 0


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from asm import mask, seq
from ruledb.proof.query import build, query_digest
from ruledb.proof.solvers import new_environment
for _ in range({extra}):
    build(new_environment(), seq("mul ebx; shl ecx, cl"), seq("mul ecx"), "functional")
e = new_environment()
for left, right in (("add r0d, c0; setb r1b", "inc r0d"), ("shl r0, cl", "shl r0d, cl")):
    for encoding in ("functional", "relational"):
        print(query_digest(build(e, seq(left), seq(right), encoding), mask("r0 r1 CF ZF")))
"""


def test_digests_of_queries_are_the_same_in_every_process(repository_on_path):
    """Neither hash seeds nor what was asked before change the text of a query."""
    tests = str(Path(__file__).resolve().parents[1])
    outputs = set()
    for seed, extra in ((0, 0), (1, 1), (123, 2)):
        script = SCRIPT.format(tests=tests, extra=extra)
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env=repository_on_path | {"PYTHONHASHSEED": str(seed)},
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1
    assert len(set(next(iter(outputs)).split())) == 4


def _digest(left, right, live, encoding="functional"):
    return query_digest(build(new_environment(), seq(left), seq(right), encoding), mask(live))


def test_digests_follow_the_claim():
    """Another mask, side or encoding is another query."""
    made = {
        _digest("add r0d, 1", "inc r0d", "r0"),
        _digest("add r0d, 1", "inc r0d", "r0 ZF"),
        _digest("add r0d, 1", "sub r0d, -1", "r0 ZF"),
        _digest("add r0d, 1", "inc r0d", "r0", "relational"),
    }
    assert len(made) == 4
    assert _digest("add r0d, 1", "inc r0d", "r0") in made


def test_digests_follow_the_meaning(monkeypatch):
    """A change of semantics changes the digest, so that old proofs are seen to be stale."""
    before = _digest("add r0d, r1d", "lea r0d, [r0+r1]", "r0")
    monkeypatch.setattr(Terms, "add", lambda self, a, b: self.manager.BVAdd(b, a))
    assert _digest("add r0d, r1d", "lea r0d, [r0+r1]", "r0") != before


@pytest.mark.parametrize(("left", "right", "live"), EQUIVALENT[:6])
def test_the_text_of_a_query_is_a_whole_script(left, right, live):
    """Every symbol of the text is declared, and the assertion is there once."""
    environment = new_environment()
    text = query_text(build(environment, seq(left), seq(right), "functional"), mask(live))
    assert text.count("(assert") == 1
    assert text.count("(check-sat") == 1
    declared = {line.split()[1] for line in text.splitlines() if line.startswith("(declare-fun")}
    used = {word for word in text.replace("(", " ").replace(")", " ").split() if word in FLAGS or (word[0] in "rc" and word[1:].isdigit())}
    assert used <= declared


def test_answers_carry_the_values_that_were_asked_for():
    """A satisfiable formula comes with values, an unsatisfiable one without, an unknown solver is refused."""
    environment = new_environment()
    m, t = environment.formula_manager, Terms(environment)
    a = t.symbol("a", 8)
    for name in solvers.SOLVERS:
        answer = ask(environment, m.Equals(a, t.const(200, 8)), [a, t.add(a, a), m.BVULT(a, t.const(3, 8))], name, 1000)
        assert isinstance(answer, Sat)
        assert answer.values == (200, 144, 0)
        assert isinstance(ask(environment, m.And(m.Equals(a, t.const(1, 8)), m.Equals(a, t.const(2, 8))), [], name, 1000), Unsat)
        assert solvers.solver_version(name)[0].isdigit()
    with pytest.raises(ValueError, match="expected one of"):
        ask(environment, m.TRUE(), [], "yices", 10)


@pytest.mark.parametrize("name", ["bitwuzla", "z3"])
def test_a_limit_of_a_millisecond_is_kept(name):
    """Either solver stops when its time is up, and says so."""
    environment = new_environment()
    query = build(environment, seq(HARD[0]), seq(HARD[1]), "functional")
    answer = ask(environment, query.differs(mask("r0")), [], name, 1)
    assert answer == Unknown(answer.ms, "timeout")
    assert answer.ms < 2000
    assert sequence_text(seq(HARD[0])) == HARD[0]
