"""
Programs of the system, rewritten, do real work as before.

By default with the sample rules, and small programs only; `RULEDB_RULES=FILE pytest -m long tests/files` takes a trained rule
file and the large ones.
"""

import hashlib
import os
import shutil
from pathlib import Path

import pytest
from whole_files import require_sound, told

BASH = r"""
for i in {1..3000}; do x=$(( (x * 31 + i ** 2) % 65521 )); done; echo $x
declare -A a; for w in the quick brown fox jumps over the lazy dog; do a[$w]=$(( ${a[$w]:-0} + ${#w} )); done
for k in $(printf '%s\n' "${!a[@]}" | sort); do echo "$k=${a[$k]}"; done
[[ "2024-02-29T12:30" =~ ^([0-9]+)-0?([0-9]+)-(.*)$ ]] && echo "${BASH_REMATCH[@]:1}"
f() { local n=$1; (( n < 2 )) && { echo $n; return; }; echo $(( $(f $((n-1))) + $(f $((n-2))) )); }; f 9
case "${x^^}" in [0-9]*) printf '%08.3f|%-6s|%x\n' 3.14159 ab 255;; esac
while read -r l; do set -- $l; echo "$# ${l//o/0} ${l%% *} ${*:2:1}"; done <<< $'one two three\nfour five'
trap 'echo bye' EXIT; echo "${PATH//[^:]}" | wc -c > /dev/null; shopt -s extglob; s=aaabbb; echo "${s##+(a)}"; exit 7
"""
PERL = r"""
my (%h, @l); for (1 .. 20000) { $h{$_ % 97} .= chr(65 + $_ % 26) if /7|3/; push @l, $_ * 7919 % 1009 }
print length(join '', map { $h{$_} } sort keys %h), ' ', (sort { $a <=> $b } @l)[500], "\n";
printf "%.6e %s %vd\n", 3.14159 ** 5, join(',', map { s/(\d)(\d)/$2$1/gr } qw(12 345 6789)), '1.22.333';
print unpack('H*', pack 'N n C w a5', 1, 2, 3, 400, 'xyz'), ' ', scalar reverse('abc'), ' ', ucfirst lc 'HELLO', "\n";
my $t = 'the cat sat on the mat ' x 50; my %c; $c{$_}++ for $t =~ /\b(\w+)\b/g; print map { "$_=$c{$_};" } sort keys %c; print "\n";
sub f { my $n = shift; $n < 2 ? $n : f($n - 1) + f($n - 2) } print f(15), "\n"; eval { die { code => 5 } }; print $@->{code}, "\n";
local $_ = 'a1b22c333'; my @p = split /\d+/; print "@p ", tr/0-9//, "\n"; print sprintf('%b %o %x', 1 .. 3), "\n"; exit 3
"""
GAWK = r"""
BEGIN { for (i = 1; i <= 20000; i++) { s += sin(i) * i; k = (k * 75 + 74) % 65537; n[k % 50] += i }
  m = asorti(n, o); for (i = 1; i <= 5; i++) printf "%s:%d ", o[i], n[o[i]]; printf "%.6f\n", s
  print toupper("abc"), gensub(/(b+)(.)/, "[\\2\\1]", "g", "abbcabd"), substr("hello", 2, 3), index("foobar", "bar"), length(o)
  print strftime("%Y", 86400 * 366, 1), and(12, 10), sprintf("%5.2f|%-5s|%05d|%c", 2.345, "ab", 42, 65); print match("xxabcx", /a.c/), RSTART
  while ((getline line < "/etc/passwd") > 0) { split(line, f, ":"); c[f[7]]++ } print (c["/bin/bash"] >= 0); exit 5 }
"""
SQL = r"""
with recursive c(x) as (select 1 union all select x + 1 from c where x < 30000) select sum(x * x % 17), count(*), avg(x), total(1.0 / x) from c;
create table t(a integer primary key, b text, c real); insert into t select value, printf('%04x', value * 7919 % 65521), value / 3.0 from generate_series(1, 2000);
create index i on t(b); select b, count(*), sum(c) from t group by substr(b, 1, 1) order by 2 desc, 1 limit 6; select * from t where b between 'a0' and 'a1' limit 3;
select json_extract('{"a":[1,{"b":2.5}]}', '$.a[1].b'), hex(zeroblob(3)), strftime('%J', '2024-02-29'), upper('abc') || substr('hello', -3);
update t set c = c * 2 where a % 3 = 0; delete from t where a % 7 = 0; select count(*), round(sum(c), 3), max(b) from t; explain query plan select * from t where b = 'x';
select a, sum(c) over (order by a rows 2 preceding) from t limit 4; pragma integrity_check; select * from missing;
"""
PYTHON = Path(__file__).with_name("workload.txt")
GIT = r"""
set -e; cd "$0"; "$1" init -q . ; "$1" config user.name a; "$1" config user.email a@b
for i in 1 2 3 4 5 6; do seq $((i * 7)) $((i * 300)) > "f$((i % 3))"; "$1" add -A; GIT_AUTHOR_DATE="170000000$i +0000" GIT_COMMITTER_DATE="170000000$i +0000" "$1" commit -qm "change $i"; done
"$1" log --stat --format='%H %s'; "$1" diff HEAD~3 HEAD | sha1sum; "$1" checkout -q -b other HEAD~2; echo x > g; "$1" add g
GIT_AUTHOR_DATE='1700000109 +0000' GIT_COMMITTER_DATE='1700000109 +0000' "$1" commit -qm side; GIT_AUTHOR_DATE='1700000110 +0000' GIT_COMMITTER_DATE='1700000110 +0000' "$1" merge -q master -m join || true
"$1" log --graph --oneline --all | cat; "$1" gc -q; "$1" fsck --strict 2>&1 | cat; "$1" blame f1 | tail -3 | cut -c1-8; "$1" grep -c 29 HEAD; "$1" rev-list --objects --all | wc -l
"$1" archive HEAD | sha1sum; "$1" shortlog -s HEAD | cat; "$1" for-each-ref; "$1" show --stat HEAD | tail -2
"""

QUICK = {
    "bash": ["{program}", "-c", BASH],
    "gawk": ["{program}", GAWK],
    "xz": ["bash", "-c", '"$0" -k -6 -c "$1" | tee >(sha1sum >&2) | "$0" -d -c | sha1sum; "$0" -t "$1"', "{program}", "/bin/bash"],
    "sqlite3": ["{program}", ":memory:", SQL],
}
LARGE = {
    "perl": ["{program}", "-e", PERL],
    "git": ["bash", "-c", GIT, "{folder}", "{program}"],
    "python3.11": ["{program}", "-S", str(PYTHON)],
    "gdb": ["{program}", "-nx", "-batch", "-ex", "python print(sum(i * i for i in range(999)))", "-ex", "ptype 3 + 4.5", "-ex", "info functions ^mal",
            "-ex", "disassemble /r malloc,+20", "-ex", "p/x 255 * 3", "/bin/sh"],
}  # fmt: skip


def workload(command, program, folder):
    """What the *command* of the program at *program* does in *folder*."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8", "PYTHONHOME": "/usr", "TZ": "UTC"}
    filled = [part.replace("{program}", str(program)).replace("{folder}", str(folder)) if len(part) < 20 else part for part in command]
    return told(filled, cwd=folder, env=environment)


def require_same_work(name, command, rewrite, tmp_path):
    """The program *name* of the system does the same when rewritten, and has been rewritten."""
    path = Path("/usr/bin") / name
    if not path.is_file():
        pytest.skip(f"needs {path}")
    # Under its own name, since some look at that.
    folder, out = tmp_path / "work", tmp_path / "bin" / name
    out.parent.mkdir()
    assert rewrite(path, "-o", out) == (0, "")
    require_sound(path, out)
    assert hashlib.sha1(path.read_bytes()).digest() != hashlib.sha1(out.read_bytes()).digest()
    expected = workload(command, shutil.copy(path, tmp_path / name), folder)
    assert expected[1]
    found = workload(command, out, folder)
    assert tuple(str(part).replace(str(out), "") for part in found) == tuple(
        str(part).replace(str(tmp_path / name), "") for part in expected
    )


@pytest.mark.parametrize("name", QUICK)
def test_small_programs_work_as_before(rewrite, tmp_path, name):
    """A small program of the system, rewritten, prints the same for a mixed workload."""
    require_same_work(name, QUICK[name], rewrite, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", LARGE)
def test_large_programs_work_as_before(rewrite, tmp_path, name):
    """So does a large one."""
    require_same_work(name, LARGE[name], rewrite, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", ["libc.so.6", "libstdc++.so.6", "libcrypto.so.3", "libm.so.6", "libz.so.1"])
def test_libraries_serve_as_before(rewrite, tmp_path, name):
    """Programs that load a rewritten library of the system do the same."""
    path = next((p for p in (Path("/lib/x86_64-linux-gnu") / name, Path("/usr/lib/x86_64-linux-gnu") / name) if p.is_file()), None)
    if path is None:
        pytest.skip(f"needs {name}")
    assert rewrite(path, "-o", tmp_path / name) == (0, "")
    for program, command in QUICK.items():
        place = Path("/usr/bin") / program
        if place.is_file():
            loading = ["env", f"LD_LIBRARY_PATH={tmp_path}", *command]
            assert workload(loading, place, tmp_path / "work") == workload(command, place, tmp_path / "work")
