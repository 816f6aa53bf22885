"""The command `peephole-rewrite`: exit codes, messages, and what is left on disk."""

import json
import os
import stat
import subprocess
import sys

import pytest
from sample_rules import RULES

from rewriter import cli
from ruledb.machine.places import remember_rules
from ruledb.machine.rulefile import FORMAT, rule_file_text

EXPECTED = "expected a 64-bit little-endian x86-64 ELF program, shared library or object file"


def poked(data, offset, new):
    """*data* with *new* at *offset*."""
    return data[:offset] + new + data[offset + len(new) :]


def names_in(folder):
    """What *folder* holds."""
    return sorted(path.name for path in folder.iterdir())


def test_a_program_is_rewritten_beside_the_input(peephole, program, corpus, run):
    """The default output is INPUT.opt; it runs, and a summary is printed."""
    code, out, err = peephole(program)
    assert (code, err) == (0, "")
    assert out.startswith("output     /")
    assert run(f"{program}.opt") == (0, (corpus / "expected" / "vm.txt").read_bytes())


BAD_INPUTS = {
    "empty": (lambda _: b"", "is empty"),
    "text": (lambda _: b"hello\n", "is not an ELF file"),
    "cut": (lambda data: data[:40], "is cut short within its ELF header (40 of 64 bytes)"),
    "cut later": (lambda data: data[:1000], "is cut short: a segment ends at byte"),
    "32-bit": (lambda data: poked(data, 4, b"\1"), "is a 32-bit ELF file"),
    "big-endian": (lambda data: poked(data, 5, b"\2"), "is a big-endian ELF file"),
    "ARM": (lambda data: poked(data, 18, b"\xb7\0"), "is for machine 183 (AArch64)"),
    "core": (lambda data: poked(data, 16, b"\4\0"), "is a core dump"),
}


@pytest.mark.parametrize("kind", BAD_INPUTS)
def test_bad_inputs_are_refused_in_one_line(peephole, program, kind):
    """What is no x86-64 ELF program is refused with its name and the reason; nothing is written."""
    change, reason = BAD_INPUTS[kind]
    program.write_bytes(change(program.read_bytes()))
    code, out, err = peephole(program)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"peephole-rewrite: {program}: {reason}")
    assert err.endswith(f"{EXPECTED}\n")
    assert names_in(program.parent) == ["program"]


def test_what_is_no_file_is_refused(peephole, tmp_path):
    """A directory, a pipe without a writer, and a name without a file are refused at once."""
    os.mkfifo(tmp_path / "pipe")
    for name, reason in ((".", "is a directory"), ("pipe", "is a named pipe"), ("none", "cannot be read: No such file or directory")):
        code, _, err = peephole(tmp_path / name)
        assert (code, err) == (2, f"peephole-rewrite: {tmp_path / name}: {reason}; {EXPECTED}\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_refused(peephole, program):
    """Without the right to read, the reason is named."""
    program.chmod(0)
    assert peephole(program)[2] == f"peephole-rewrite: {program}: cannot be read: Permission denied; {EXPECTED}\n"


def test_an_object_file_is_refused(peephole, build):
    """Code that is still to be linked is refused."""
    code, _, err = peephole(build("int f(void) { return 0; }", "-c"))
    assert code == 2
    assert "is an object file; expected a linked program or shared library: link it first" in err


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda text: text[:-20], "the file does not match its SHA-256 (cut short or changed)"),
        (lambda text: text.replace(f"ruledb-rules {FORMAT}", "ruledb-rules 99"), f"rule format 99, expected {FORMAT}"),
        (lambda _: "", "not a rule file"),
    ],
)
def test_bad_rule_files_are_refused(peephole, program, tmp_path, change, reason):
    """A rule file that is cut short, of another format, or none at all is refused with its name."""
    rules = tmp_path / "bad.rules"
    rules.write_text(change(rule_file_text(RULES, "x")))
    code, _, err = peephole(program, "--rules", rules)
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith(f"peephole-rewrite: {rules}: {reason}")
    assert not program.with_name("program.opt").exists()


def test_without_any_rule_file_it_says_what_to_do(peephole, program, monkeypatch, tmp_path):
    """Neither option, variable, trained nor shipped rules: one line names the ways out."""
    monkeypatch.delenv("RULEDB_RULES")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(cli, "_SHIPPED", tmp_path / "none")
    code, _, err = peephole(program)
    expected = "no rule file: no training has exported one; run 'ruledb train', set RULEDB_RULES, or name one with --rules"
    assert (code, err) == (2, f"peephole-rewrite: {expected}\n")


def test_trained_rules_come_before_shipped_ones(peephole, program, monkeypatch, tmp_path, rule_file):
    """The rule file that the last training exported is taken, else the one that ships with the package."""
    monkeypatch.delenv("RULEDB_RULES")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(cli, "_SHIPPED", tmp_path / "shipped.rules")
    (tmp_path / "shipped.rules").write_text(rule_file_text((), "shipped"))
    assert "semantics shipped" in peephole("--version")[1]
    remember_rules(rule_file)
    assert "semantics hand-written" in peephole("--version")[1]
    assert peephole(program)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no INPUT given; expected a program or shared library; see peephole-rewrite --help"),
        (["p", "--in-place", "-o", "q"], "--in-place and --output exclude each other; give one of them"),
        (["p", "--colour"], "unrecognized arguments: --colour; see peephole-rewrite --help"),
    ],
)
def test_bad_usage_is_one_line(peephole, arguments, message):
    """Bad usage is exit code 2 and one line."""
    assert peephole(*arguments) == (2, "", f"peephole-rewrite: {message}\n")


@pytest.mark.parametrize("option", ["--cost", "--march", "--abi"])
def test_bad_choices_are_one_line(peephole, option):
    """A value that an option does not know is refused with what it knows."""
    code, _, err = peephole("p", option, "x")
    assert (code, err.count("\n")) == (2, 1)
    assert f"argument {option}: invalid choice: 'x'" in err


def test_a_function_to_skip_must_exist(peephole, program):
    """A name that no function has is refused, and nothing is written."""
    code, _, err = peephole(program, "--skip", "nobody")
    assert code == 2
    assert "skip 'nobody'" in err
    assert not program.with_name("program.opt").exists()


def test_outputs_that_would_destroy_something_are_refused(peephole, program, tmp_path):
    """The input, also under another name, what is no regular file, and one name for two outputs are refused."""
    (tmp_path / "link").symlink_to(program)
    (tmp_path / "twin").hardlink_to(program)
    before = program.read_bytes()
    for name in ("program", "link", "twin"):
        code, _, err = peephole(program, "-o", tmp_path / name)
        assert (code, err) == (2, f"peephole-rewrite: {tmp_path / name}: is the input itself; name another file, or ask for --in-place\n")
    assert peephole(program, "--in-place", "--report", program)[0] == 2
    assert peephole(program, "-o", "/dev/null")[2].endswith("exists and is no regular file; expected a file to replace, or a new name\n")
    assert peephole(program, "-o", tmp_path / "x", "--report", tmp_path / "x")[0] == 2
    assert program.read_bytes() == before
    assert names_in(tmp_path) == ["link", "program", "twin"]


def test_an_output_that_cannot_be_written_is_refused(peephole, program, tmp_path):
    """A missing directory is one line; neither the output nor the report is left behind."""
    code, _, err = peephole(program, "-o", tmp_path / "no" / "x", "--report", tmp_path / "r.json")
    assert (code, err) == (
        2,
        f"peephole-rewrite: {tmp_path}/no/x: cannot be written: No such file or directory; name a writable place with -o\n",
    )
    assert names_in(tmp_path) == ["program"]


@pytest.mark.parametrize("mode", [0o444, 0o750, 0o700, 0o4755, 0o6711])
def test_mode_bits_stay(peephole, program, mode):
    """The output has the input's mode bits, whatever the umask; for the same owner that includes the set-id bits."""
    program.chmod(mode)
    old = os.umask(0o077)
    try:
        assert peephole(program)[0] == 0
    finally:
        os.umask(old)
    assert stat.S_IMODE(program.with_name("program.opt").stat().st_mode) == mode


def test_set_id_bits_are_for_their_owner_only(peephole, program, monkeypatch):
    """Where the output's owner is another, a set-id bit would give away rights: it is dropped."""
    program.chmod(0o4755)
    monkeypatch.setattr(os, "fchown", lambda *_: None)
    monkeypatch.setattr(
        cli, "_mode", lambda descriptor, file, whole=cli._mode: whole(descriptor, cli._File(file.path, b"", file.mode, (12345, 1)))
    )
    assert peephole(program)[0] == 0
    assert stat.S_IMODE(program.with_name("program.opt").stat().st_mode) == 0o755


def test_in_place_replaces_the_input(peephole, program, corpus, run):
    """The input itself is rewritten, and a second time changes nothing."""
    before = program.read_bytes()
    assert peephole(program, "--in-place")[0] == 0
    after = program.read_bytes()
    assert (after != before, len(after) == len(before)) == (True, True)
    assert peephole(program, "--in-place")[0] == 0
    assert program.read_bytes() == after
    assert run(program)[1] == (corpus / "expected" / "vm.txt").read_bytes()
    assert names_in(program.parent) == ["program"]


def test_a_link_is_followed(peephole, program, tmp_path):
    """Beside a link, a plain file is written; in place, the file behind the link is replaced and the link stays."""
    link = tmp_path / "link"
    link.symlink_to(program)
    assert peephole(link)[0] == 0
    assert (tmp_path / "link.opt").is_file()
    assert not (tmp_path / "link.opt").is_symlink()
    assert peephole(link, "--in-place")[0] == 0
    assert link.is_symlink()
    assert program.read_bytes() == (tmp_path / "link.opt").read_bytes()


def test_a_dry_run_writes_only_the_report(peephole, program, tmp_path):
    """With --dry-run there is a report, but no output."""
    assert peephole(program, "--dry-run", "--report", tmp_path / "r.json")[0] == 0
    assert names_in(tmp_path) == ["program", "r.json"]
    report = json.loads((tmp_path / "r.json").read_text())
    assert (report["output"], report["bytes_saved"] > 0) == (None, True)


def test_nothing_to_do_is_done(peephole, program, tmp_path):
    """Without a rule that fits, the output is byte-identical and the exit code 0."""
    rules = tmp_path / "none.rules"
    rules.write_text(rule_file_text((), "x"))
    assert peephole(program, "--rules", rules)[0] == 0
    assert program.with_name("program.opt").read_bytes() == program.read_bytes()


def test_quiet_verbose_and_explain(peephole, program):
    """-q prints nothing, --explain the rewrites, -v the stages on standard error."""
    assert peephole(program, "-q") == (0, "", "")
    assert "  - mov eax, 0\n  + xor eax, eax\n" in peephole(program, "-q", "--explain")[1]
    assert "liveness" in peephole(program, "-q", "-v")[2]


def test_names_of_any_kind(peephole, program):
    """Letters outside ASCII, line breaks and bytes that are no text are fine in names; messages stay one line."""
    for name in ("prögram", "two\nlines", b"\xff\xfe".decode("utf-8", "surrogateescape")):
        path = program.with_name(name)
        path.write_bytes(program.read_bytes())
        assert peephole(path, "-q")[0] == 0
    broken = program.with_name("bro\nken")
    broken.write_bytes(b"")
    assert peephole(broken)[2].count("\n") == 1


def test_an_interrupt_is_130(peephole, program, monkeypatch):
    """Ctrl-C ends with 130, without output."""

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "rewrite", interrupted)
    assert peephole(program) == (130, "", "")
    assert names_in(program.parent) == ["program"]


def test_the_command_runs_and_imports_no_prover(program, rule_file):
    """As a process: the version is told, a reader that leaves early is no error, and neither solver, compiler nor database is loaded."""
    script = (
        "import sys; import rewriter.cli; "
        "print([m for m in sys.modules if m.split('.')[0] in ('pysmt', 'llvmlite', 'sqlalchemy', 'unicorn', 'z3', 'bitwuzla', 'rich', 'typer') "
        "or m.startswith(('ruledb.semantics', 'ruledb.search', 'ruledb.proof', 'ruledb.store'))])"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout == b"[]\n"
    command = [sys.executable, "-m", "rewriter.cli"]
    version = subprocess.run([*command, "--version", "--rules", rule_file], capture_output=True, check=True).stdout
    assert f"rule format {FORMAT}, semantics hand-written ({rule_file})" in version.decode()
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*command, program, "--rules", rule_file], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
