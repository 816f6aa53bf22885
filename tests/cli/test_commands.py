"""The commands: exit codes and JSON keys of the contract, and rules that travel between databases."""

import io
import json

import bitwuzla
import pytest
from asm import ADD_TO_INC, LEA_TO_ADD, MOV_TO_XOR, rule
from pysmt.smtlib.parser import SmtLibParser
from trainings import claims, open_store, url_of

from ruledb import cli, commands
from ruledb.machine.rulefile import read_rule_file, rule_file_text
from ruledb.proof.prover import Undecided
from ruledb.proof.solvers import Unsat, ask, new_environment
from ruledb.semantics.digest import semantics_digest
from ruledb.store.store import Store

FIGURES = {"instructions", "bytes", "cycles"}


@pytest.mark.parametrize(
    ("arguments", "code", "verdict"),
    [
        (("mov eax, 0", "xor eax, eax"), 0, "equivalent"),
        (("mov eax, 0", "xor eax, eax", "--live-flags", "all"), 1, "different"),
        (("add eax, 1", "inc eax", "--live-flags", "PF AF ZF SF OF"), 0, "equivalent"),
        (("add eax, 1", "inc eax", "--live-flags", "cf"), 1, "different"),
        (("mov rax, rbx", "mov eax, ebx", "--live-out", "eax"), 0, "equivalent"),
        (("mov rax, rbx", "mov eax, ebx", "--live-out", "rax"), 1, "different"),
        (("mov eax, 1", "mov ecx, 1; mov eax, ecx"), 1, "different"),
        (("mov eax, 1", "mov ecx, 1; mov eax, ecx", "--scratch", "rcx"), 0, "equivalent"),
        (("mov eax, fs:[rbx]", "mov eax, fs:[rbx]"), 3, "unsupported"),
        (("mov rax, rax", ""), 0, "equivalent"),
        (("mov eax, eax", ""), 1, "different"),
        (("call there", "nop"), 3, "unsupported"),
        (("sub eax, ecx; test eax, eax; jne L", "sub eax, ecx; jne L"), 0, "equivalent"),
        (("sub eax, ecx; test eax, eax; jne L", "sub eax, ecx; je L"), 1, "different"),
        (("mov eax, 1\nnop", "mov eax, 1"), 0, "equivalent"),
    ],
)
def test_check(ruledb_json, arguments, code, verdict):
    """The exit code says the verdict: 0 equivalent, 1 different, 3 neither."""
    got, answer = ruledb_json("check", *arguments)
    assert (got, answer["verdict"]) == (code, verdict)
    assert answer.keys() == {"verdict", "counterexample", "left", "right", "reason"}
    assert bool(answer["reason"]) == (verdict != "equivalent")
    if verdict == "different" and "scratch" not in answer["reason"]:
        assert answer["counterexample"].keys() == {"regs", "flags", "memory"}
        assert answer["left"] != answer["right"]


_STORED = "mov qword ptr [rbp-8], rax; mov rcx, qword ptr [rbp-8]", "mov qword ptr [rbp-8], rax; mov rcx, rax"
_PUSHED = "push rax; mov ecx, [rbx]; pop rdx", "mov rdx, rax; mov ecx, [rbx]"
_BELOW = "--assume", "private(rsp-8)", "--assume", "dead(rsp-8)"


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (("mov eax, [rbx]; add ecx, eax", "add ecx, [rbx]", "--live-out", "ecx"), 0, "policy strict"),
        (_STORED, 1, "only the memory policy strict forbids it"),
        ((*_STORED, "--policy", "stack"), 1, "only the memory policy stack forbids it"),
        ((*_STORED, "--policy", "stack", "--assume", "stack(rbp)"), 0, "policy stack, assuming stack(rbp)"),
        ((*_STORED, "--policy", "plain"), 0, "policy plain"),
        ((*_PUSHED, *_BELOW), 0, "policy strict, assuming private(rsp-8), dead(rsp-8)"),
        ((*_PUSHED, *_BELOW[:2]), 1, "differs in memory"),
        (_PUSHED, 1, "differs in"),
        (("lock add dword ptr [rbx], 1", "add dword ptr [rbx], 1"), 1, "barrier lock"),
        (("mov [rbx], eax", "nop", "--no-live-memory"), 1, "only the memory policy strict forbids it"),
        (("mov [rbx], eax", "nop", "--no-live-memory", "--policy", "plain"), 0, "policy plain"),
        (("mov eax, ecx; mov [rbx], eax", "mov [rbx], edx", "--live-out", "ebx", "--no-live-memory"), 0, "policy strict"),
        (("mov eax, [rbx]; bswap eax", "movbe eax, [rbx]"), 1, "march: the replacement needs movbe"),
        (("mov eax, [rbx]; bswap eax", "movbe eax, [rbx]", "--march", "x86-64-v3"), 0, "policy strict"),
        (("tzcnt eax, ecx", "tzcnt eax, ecx"), 3, "another instruction on some processors"),
        (("tzcnt eax, ecx", "tzcnt eax, ecx", "--march", "x86-64-v3"), 0, ""),
        (("lea rax, [rip+0x4000]", "mov eax, 0x4000"), 1, "differs in"),
        (("lea rax, [rip+0x4000]; mov ecx, [rax+8]", "mov ecx, [rip+0x4008]", "--live-out", "ecx"), 0, "policy strict"),
    ],
)
def test_check_of_memory(ruledb_json, arguments, code, reason):
    """The reason says under which policy and assumptions a window with memory may be replaced, or what forbids it."""
    got, answer = ruledb_json("check", *arguments)
    assert got == code, answer
    assert answer["reason"].startswith(reason) if code != 3 else reason in answer["reason"]


def test_check_refuses_unknown_assumptions(ruledb):
    """An assumption or a policy that does not exist is bad usage."""
    assert ruledb("check", "nop", "nop", "--assume", "stack(eax)")[0] == 2
    assert ruledb("check", "nop", "nop", "--policy", "lax")[0] == 2


def test_check_shows_bytes_and_faults(ruledb_json):
    """The state that tells two windows apart has bytes of memory, and says which side faults."""
    _, answer = ruledb_json("check", "mov [rdi], al; mov [rsi], cl", "mov [rsi], cl; mov [rdi], al", "--policy", "plain")
    assert answer["counterexample"]["memory"]
    assert answer["left"]["memory"] != answer["right"]["memory"]
    _, answer = ruledb_json("check", "movzx eax, word ptr [rdi]", "mov eax, dword ptr [rdi]", "--live-out", "ax")
    assert (answer["left"]["fault"], answer["right"]["fault"]) == (False, True)


def test_check_says_unknown(ruledb, monkeypatch):
    """What the solvers leave open is neither verdict: exit code 3."""
    monkeypatch.setattr(commands.Prover, "prove", lambda *_, **__: Undecided("timeout", 1.0))
    assert ruledb("check", "mov eax, 0", "xor eax, eax")[:2] == (3, "unknown: timeout\n")


def test_check_shows_a_state(ruledb):
    """Without --json the difference is shown in words."""
    code, out, err = ruledb("check", "add eax, 1", "inc eax", "--live-flags", "CF")
    assert (code, err) == (1, "")
    assert out.startswith("different: differs in CF\n")
    assert {"counterexample", "left", "right"} <= {line.split()[0] for line in out.splitlines()[1:]}


def test_a_window_may_come_from_standard_input(ruledb):
    """A dash reads it from there."""
    assert ruledb("check", "-", "xor eax, eax", stdin=io.StringIO("mov eax, 0 # zero\n")).out == "equivalent\n"


@pytest.mark.parametrize(
    ("arguments", "code", "status", "replacement"),
    [
        (("add eax, 1",), 0, "improved", ["inc eax"]),
        (("mov eax, 0", "--live-flags", "CF", "--length", "1"), 0, "optimal", None),
        (("mov rax, rax",), 0, "improved", []),
        (("push rax",), 3, "unsupported", None),
        (("lea eax, [rip+0x1000]",), 3, "unsupported", None),
        (("mov eax, [rbx]; mov ecx, eax", "--live-out", "rcx"), 0, "improved", ["mov ecx, dword ptr [rbx]"]),
        (
            ("test eax, eax; sete al; movzx eax, al; test eax, eax; jne there", "--live-out", "rbx"),
            0,
            "improved",
            ["and eax, eax", "jbe there"],
        ),
        (("imul eax, ebx, 77; add eax, ecx", "--timeout", "0"), 3, "gave-up", None),
    ],
)
def test_optimize(ruledb_json, arguments, code, status, replacement):
    """Exit code 0 for an answer, 3 for none; a replacement comes with its proof and its cost."""
    got, answer = ruledb_json("optimize", *arguments, "--jobs", "2")
    assert (got, answer["status"], answer["replacement"]) == (code, status, replacement)
    assert answer.keys() == {"status", "input", "replacement", "before", "after", "proof", "searched", "reason"}
    assert answer["searched"].keys() == {"length", "candidates"}
    if status == "improved":
        assert answer["proof"].keys() == {"verdict", "solver", "second_solver", "ms"}
        assert answer["before"].keys() == answer["after"].keys() == FIGURES
        assert answer["after"]["bytes"] < answer["before"]["bytes"]
    if status in ("unsupported", "gave-up"):
        assert answer["reason"]


@pytest.fixture
def filled(tmp_path):
    """A database with rules: its URL is the default one."""
    store = open_store(tmp_path)
    store.add_results((), [ADD_TO_INC, MOV_TO_XOR, LEA_TO_ADD])
    return store


def test_optimize_knows_the_rules(ruledb_json, filled):
    """A stored rule answers without a search, where its conditions hold."""
    _, answer = ruledb_json("optimize", "add ecx, 1", "--live-flags", "ZF")
    assert (answer["replacement"], answer["searched"]["candidates"]) == (["inc ecx"], 0)
    _, answer = ruledb_json("optimize", "add ecx, 1", "--live-flags", "CF", "--length", "1", "--jobs", "2")
    assert answer["status"] == "optimal"


RULE_KEYS = {"digest", "pattern", "replacement", "live_out", "guards", "policy", "assumes", "march", "saved_bytes", "saved_cycles", "uses"}


@pytest.mark.parametrize("sort", ["saving", "uses", "bytes", "cycles"])
def test_rules(ruledb_json, ruledb, filled, sort):
    """Rules are listed in the order asked for, as many as asked for."""
    code, listed = ruledb_json("rules", "--sort", sort)
    assert code == 0
    assert all(entry.keys() == RULE_KEYS for entry in listed)
    assert {entry["digest"] for entry in listed} == {r.digest for r in filled.rules()}
    if sort == "uses":
        assert [entry["uses"] for entry in listed] == [7, 3, 0]
    assert len(ruledb_json("rules", "--sort", sort, "--top", "2")[1]) == 2
    assert "add r0d, 1" in ruledb("rules").out


def test_show(ruledb_json, ruledb, filled):
    """One rule, found by the start of its digest, with proofs and provenance."""
    code, shown = ruledb_json("show", ADD_TO_INC.digest[:8])
    assert code == 0
    assert shown.keys() >= RULE_KEYS | {"dead", "proofs", "seen", "witness"}
    assert shown["dead"] == "CF"
    assert len(shown["proofs"]) == 2
    assert ADD_TO_INC.digest in ruledb("show", ADD_TO_INC.digest).out


@pytest.mark.parametrize("shown", [ADD_TO_INC, MOV_TO_XOR, LEA_TO_ADD], ids=lambda r: str(r.pattern[0]))
def test_the_query_of_a_rule_is_a_script_that_solvers_read(ruledb, filled, shown):
    """PySMT's parser and Bitwuzla's own read it, and it is unsatisfiable."""
    script = ruledb("show", shown.digest, "--smt2").out
    environment = new_environment()
    formula = SmtLibParser(environment).get_script(io.StringIO(script)).get_last_formula()
    assert isinstance(ask(environment, formula, [], "z3", 5000), Unsat)
    parser = bitwuzla.Parser(bitwuzla.TermManager(), bitwuzla.Options())
    parser.parse(script.replace("(check-sat)", ""), parse_only=True, parse_file=False)
    assert parser.bitwuzla().check_sat() == bitwuzla.Result.UNSAT


WRONG = rule("add r0d, 1", "inc r0d", "r0 CF")
FOREIGN = rule("mov r0d, 1", "mov r1d, 1; mov r0d, r1d", "r0 all")


def file_of(path, *rules, semantics=None):
    """A rule file."""
    path.write_text(rule_file_text(rules, semantics or semantics_digest()))
    return path


@pytest.mark.parametrize("solver", ["bitwuzla", "z3"])
def test_verify_a_file(ruledb_json, tmp_path, solver):
    """Right rules are proved: 0; a wrong one, or one that writes a foreign register, is refuted: 1."""
    code, answer = ruledb_json("verify", file_of(tmp_path / "right.rules", ADD_TO_INC, MOV_TO_XOR), "--solver", solver, "--jobs", "1")
    assert code == 0
    assert answer.keys() >= {"rules", "proved", "refuted", "unknown", "seconds"}
    assert (answer["rules"], answer["proved"], answer["stale"]) == (2, 2, 0)
    code, answer = ruledb_json("verify", file_of(tmp_path / "wrong.rules", WRONG, FOREIGN), "--solver", solver, "--jobs", "1")
    assert (code, answer["refuted"]) == (1, 2)


_PUSH_POP = "push r0; mov r1d, dword ptr [r2+c0]; pop r3", "mov r3, r0; mov r1d, dword ptr [r2+c0]", "r0 r1 r2 r3"
_RELOAD = "mov qword ptr [r0+c0], r1; mov r2, qword ptr [r0+c0]", "mov qword ptr [r0+c0], r1; mov r2, r1", "r0 r1 r2"
_NO_STACK = {"policy": "strict", "assumes": ("private(rsp-8)", "dead(rsp-8)")}


def test_verify_rules_about_memory(ruledb_json, tmp_path):
    """A rule about memory holds under the policy and the assumptions in its text, and under no weaker ones."""
    right = rule(*_PUSH_POP, **_NO_STACK), rule(*_RELOAD, policy="stack", assumes=("stack(r0)",))
    code, answer = ruledb_json("verify", file_of(tmp_path / "right.rules", *right), "--jobs", "1")
    assert (code, answer["proved"]) == (0, 2), answer
    wrong = rule(*_PUSH_POP, policy="strict"), rule(*_RELOAD, policy="stack"), rule(*_RELOAD, policy="lax")
    code, answer = ruledb_json("verify", file_of(tmp_path / "wrong.rules", *wrong), "--jobs", "1")
    assert (code, answer["refuted"]) == (1, 3), answer


def test_verify_the_database(ruledb_json, filled, monkeypatch):
    """Without a file the database's rules are proved; those of another meaning are reported as stale."""
    code, answer = ruledb_json("verify", "--jobs", "1")
    assert (code, answer["rules"], answer["proved"], answer["stale"]) == (0, 3, 3, 0)
    monkeypatch.setattr(commands, "semantics_digest", lambda: "another meaning")
    assert ruledb_json("verify", "--jobs", "1")[1]["stale"] == 3


def test_rules_travel(ruledb_json, trained, tmp_path):
    """What is exported and imported into another database is the same set of claims, and exports to the same rules."""
    folder = tmp_path / "other"
    folder.mkdir()
    there, back = tmp_path / "there.rules", tmp_path / "back.rules"
    url = str(trained[0].engine.url)
    code, answer = ruledb_json("export", there, "--db", url)
    assert (code, answer) == (0, {"rules": len(list(trained[0].rules()))})
    code, imported = ruledb_json("import", there, "--db", url_of(folder), "--jobs", "2")
    assert (code, imported["rules"]) == (0, answer["rules"])
    ruledb_json("export", back, "--db", url_of(folder))
    assert claims(open_store(folder)) == claims(trained[0])
    assert read_rule_file(back) == read_rule_file(there)


def test_import_proves_before_it_stores(ruledb_json, tmp_path):
    """A wrong rule is not stored, the right one beside it is, and the exit code says that not all were."""
    code, answer = ruledb_json("import", file_of(tmp_path / "mixed.rules", WRONG, MOV_TO_XOR, FOREIGN), "--jobs", "1")
    assert code == 1
    assert answer["rules"] == 1
    store = open_store(tmp_path)
    assert list(store.rules()) == [MOV_TO_XOR]


def test_stale_rules_are_not_exported_as_proved(ruledb_json, filled, monkeypatch, tmp_path):
    """A rule file never claims the meaning in force for rules that were proved under another."""
    monkeypatch.setattr(commands, "semantics_digest", lambda: "another meaning")
    ruledb_json("export", tmp_path / "out.rules")
    content = read_rule_file(tmp_path / "out.rules")
    assert content.semantics != "another meaning" or content.rules == ()


def test_stale_rules_do_not_optimize(ruledb_json, filled, monkeypatch):
    """A rule that was proved under another meaning answers nothing."""
    monkeypatch.setattr(commands, "semantics_digest", lambda: "another meaning")
    _, answer = ruledb_json("optimize", "add ecx, 1", "--live-flags", "ZF", "--jobs", "2")
    assert answer["searched"]["candidates"] > 0


TRAIN_KEYS = {
    "run", "files", "skipped", "instructions", "windows", "targets", "candidates", "candidates_per_second", "matches", "proved", "refuted",
    "unknown", "rules", "new_rules", "seconds",
}  # fmt: skip


def test_train(ruledb, tmp_path, corpus):
    """Training prints its report and nothing else on standard output, and exports the rules where it was told to."""
    out = tmp_path / "out.rules"
    given = ("train", corpus / "vm-O0", "--window", 1, "--length", 1, "--registers", 2, "--jobs", 2, "--rules-out", out, "--json")
    result = ruledb(*given)
    assert result.code == 0
    report = json.loads(result.out)
    assert report.keys() >= TRAIN_KEYS
    content = read_rule_file(out)
    assert len(content.rules) == report["rules"] > 0
    assert content.semantics == semantics_digest()
    assert content.rules == tuple(Store(open_store(tmp_path).engine, content.semantics).rules())


def test_coverage(ruledb, ruledb_json, corpus):
    """The counts add up, the missing mnemonics are ranked, and a terminal shows the ten first."""
    code, answer = ruledb_json("coverage", corpus / "vm-O0", corpus / "vm-O2")
    assert code == 0
    assert {"instructions", "modelled", "windows", "missing"} <= answer.keys()
    lacking = sum(m["count"] for m in answer["missing"])
    assert answer["instructions"] == sum(answer["excluded"].values()) + answer["modelled"] + lacking
    assert answer["share"] == round(answer["modelled"] / answer["counted"], 6)
    assert [m["count"] for m in answer["missing"]] == sorted((m["count"] for m in answer["missing"]), reverse=True)
    assert all(m["count"] == sum(f["count"] for f in m["forms"]) for m in answer["missing"])
    assert answer["windows"]["modelled"] <= answer["windows"]["all"] < answer["instructions"]
    shown = ruledb("coverage", corpus / "vm-O0", corpus / "vm-O2")
    assert shown.code == 0
    assert all(f" {m['mnemonic']} " in shown.out for m in answer["missing"][:10])


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("15m", 900), ("8h", 28800), ("5", 5), ("0.5s", 0.5), (None, None)])
def test_durations(text, seconds):
    """Budgets are given in seconds, minutes or hours."""
    assert cli._duration(text) == seconds


def test_an_interrupt_is_no_traceback(ruledb, monkeypatch):
    """Exit code 130, and one line that says that nothing is lost."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "check", interrupted)
    code, out, err = ruledb("check", "nop", "nop")
    assert (code, out, err.count("\n")) == (130, "", 1)
    assert "interrupted" in err


def test_help_names_every_command(ruledb):
    """The help lists the commands of the contract that are there."""
    result = ruledb("--help")
    assert result.code == 0
    assert all(
        name in result.out for name in ("train", "optimize", "check", "rules", "show", "verify", "export", "import", "coverage", "bench")
    )
