"""Programs of every kind that the GNU tools make: rewritten, they run as before."""

import pytest
from whole_files import require_sound, told

C = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static unsigned fold(const char *s) { unsigned h = 5381; while (*s) h = h * 33 + (unsigned char)*s++; return h; }
__attribute__((noinline)) static long gcd(long a, long b) { while (b) { long t = a % b; a = b; b = t; } return a; }
static int by_length(const void *a, const void *b) { return (int)strlen(*(char **)a) - (int)strlen(*(char **)b); }
int half(int n) { return n / 2; }
int main(int argc, char **argv)
{
    char *words[] = {"alpha", "be", "gam", "delta!", "e"};
    char buffer[64];
    unsigned long sum = 0;
    qsort(words, 5, sizeof *words, by_length);
    for (int i = 0; i < 5; i++) { snprintf(buffer, sizeof buffer, "%s-%d", words[i], half(i * argc)); sum = sum * 7 + fold(buffer); }
    for (long i = 1; i < 60; i++) sum += gcd(i * 12, 90 + i) * (i & 1 ? 1 : -1);
    printf("%lu %s\n", sum, buffer);
    return (int)(sum & 31);
}
"""
SWITCH = r"""
#include <stdio.h>
__attribute__((noinline)) static int a(int x) { return x + 1; }
__attribute__((noinline)) static int b(int x) { return x * 3; }
__attribute__((noinline)) static int c(int x) { return x ^ 21; }
__attribute__((noinline)) int pick(int n, int x)
{
    switch (n) { case 0: return a(x); case 1: return b(x); case 2: return c(x); case 3: return a(b(x)); case 4: return b(c(x));
        case 5: return x; case 6: return c(a(x)); case 7: puts("seven"); return 7; default: return -x; }
}
int main(void) { int s = 0; for (int n = -1; n < 10; n++) { s = s * 3 + pick(n, s & 255); printf("%d\n", s); } return s & 63; }
"""
GOTO = r"""
#include <stdio.h>
int main(int argc, char **argv)
{
    static void *t[] = {&&inc, &&dbl, &&neg, &&out};
    const char *p = "\0\1\1\2\0\1\3";
    long n = argc;
    goto *t[(int)*p++];
inc: n += 1; goto *t[(int)*p++];
dbl: n *= 2; goto *t[(int)*p++];
neg: n = -n; goto *t[(int)*p++];
out: printf("%ld\n", n); return n & 15;
}
"""
CXX = r"""
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>
struct Guard { int &n; explicit Guard(int &m) : n(m) {} ~Guard() { n += 10; } };
static int deep(int n, int &m) { Guard g(m); if (n == 0) throw std::runtime_error("bottom"); if (n == 3) throw n; return deep(n - 1, m) + 1; }
int main() { int m = 0, s = 0; for (int i = 0; i < 6; i++) { try { s += deep(i, m); } catch (const std::exception &e) { s += std::string(e.what()).size(); }
    catch (int k) { s += 100 * k; } } std::vector<int> v(s); std::printf("%d %d %zu\n", s, m, v.size()); return (s + m) & 63; }
"""
VARARGS = r"""
#include <stdarg.h>
#include <stdio.h>
__attribute__((noinline)) static double add(int n, ...) { va_list l; va_start(l, n); double s = 0; while (n--) s += va_arg(l, double); va_end(l); return s; }
int main(void) { printf("%.2f %.2f %.2f\n", add(1, 1.5), add(3, 1.0, 2.0, 4.25), add(0)); return (int)add(2, 3.0, 4.0); }
"""
TAIL = r"""
#include <stdio.h>
__attribute__((noinline)) int odd(unsigned n, int a, int b);
__attribute__((noinline)) int even(unsigned n, int a, int b) { return n ? odd(n - 1, b, a + 1) : a; }
__attribute__((noinline)) int odd(unsigned n, int a, int b) { return n ? even(n - 1, b + 2, a) : b; }
int (*volatile p)(unsigned, int, int) = even;
__attribute__((noinline)) int by(unsigned n) { return p(n, 1, 2); }
int main(void) { printf("%d %d\n", even(9, 1, 2), by(12)); return by(5); }
"""
IPA = r"""
#include <stdio.h>
__attribute__((noinline)) static int leaf(int a) { return a * 5 + 1; }
__attribute__((noinline)) static int mix(int a, int b, int c) { int r = leaf(a); return r + b * leaf(c) - (a ^ b ^ c); }
int main(int n, char **v) { int s = 0; for (int i = 0; i < 20; i++) s += mix(i, s & 15, n); printf("%d\n", s); return s & 63; }
"""
THREADS = r"""
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
static atomic_int n, turn;
static int plain;
static void *work(void *a) { for (int i = 0; i < 20000; i++) { atomic_fetch_add(&n, 1); while (atomic_exchange(&turn, 1)); plain += 1; atomic_store(&turn, 0); } return a; }
int main(void) { pthread_t t[4]; for (int i = 0; i < 4; i++) pthread_create(t + i, 0, work, 0); for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
    printf("%d %d\n", n, plain); return plain & 31; }
"""
SIGNALS = r"""
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
static volatile sig_atomic_t ticks;
static void tick(int s) { ticks += s != 0; }
__attribute__((noinline)) static unsigned leaf(unsigned a, unsigned b) { unsigned v[12]; for (int i = 0; i < 12; i++) v[i] = a * i + b; unsigned s = 0;
    for (int i = 0; i < 12; i++) s ^= v[i] << (i & 7); return s; }
int main(void) { struct itimerval t = {{0, 500}, {0, 500}}; signal(SIGALRM, tick); setitimer(ITIMER_REAL, &t, 0); unsigned s = 1;
    for (int i = 0; i < 3000000 || ticks < 5; i++) { unsigned r = leaf(7, 9); if (r != leaf(7, 9)) return 99; s += i < 3000000 ? r : 0; } printf("%u\n", s); return s & 15; }
"""
IFUNC = r"""
#include <stdio.h>
static int one(int x) { return x + 1; }
static int two(int x) { return x + 2; }
static int (*resolve(void))(int) { return sizeof(long) == 8 ? two : one; }
int chosen(int) __attribute__((ifunc("resolve")));
int main(void) { printf("%d %d\n", chosen(1), one(1)); return chosen(5); }
"""
DATA = r"""
#include <stdio.h>
extern const char text[];
__asm__(".text\n jmp 1f\ntext: .ascii \"\\x0f\\x0b\\xb8 in between\\0\"\n1: nop\n");
int main(void) { int n = 0; for (const char *p = text; *p; p++) n = n * 3 + *p; printf("%s %d\n", text + 3, n); return n & 31; }
"""
LIBRARY = r"""
int twice(int n) { return n + n; }
static int helper(int n) { return n * 7 - 1; }
int apply(int (*f)(int), int n) { int s = 0; for (int i = 0; i < n; i++) s += f(i) + helper(i); return s; }
"""
USER = r"""
#include <stdio.h>
int twice(int); int apply(int (*)(int), int);
int main(void) { printf("%d %d\n", twice(21), apply(twice, 20)); return apply(twice, 3); }
"""
COLD = r"""
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) int careful(int n, int m) { if (__builtin_expect(n > m, 0)) { fprintf(stderr, "%d > %d\n", n, m); if (n > 90) exit(n); return m; } return n * 2 + (m ^ n); }
int main(int c, char **v) { int s = c; for (int i = 0; i < 30; i++) s = careful(s & 63, 50 + c); printf("%d\n", s); return careful(99 * c, 3); }
"""

PLAIN = {"p.c": C}
KINDS = {
    "position-independent": (PLAIN, "gcc -O2 -o {out} p.c"),
    "fixed addresses": (PLAIN, "gcc -O2 -no-pie -fno-pie -o {out} p.c"),
    "static": (PLAIN, "gcc -O2 -static -o {out} p.c"),
    "static, position-independent": (PLAIN, "gcc -O2 -static-pie -o {out} p.c"),
    "unoptimised": (PLAIN, "gcc -O0 -o {out} p.c"),
    "for size": (PLAIN, "gcc -Os -o {out} p.c"),
    "for debugging": (PLAIN, "gcc -Og -g -o {out} p.c"),
    "vectorised": (PLAIN, "gcc -O3 -mavx2 -mbmi2 -o {out} p.c"),
    "by clang": (PLAIN, "clang -O2 -o {out} p.c"),
    "by clang, unoptimised": (PLAIN, "clang -O0 -o {out} p.c"),
    "one section per function": (PLAIN, "gcc -O2 -ffunction-sections -Wl,--gc-sections -o {out} p.c"),
    "hot and cold parts": ({"p.c": COLD}, "gcc -O2 -freorder-blocks-and-partition -o {out} p.c"),
    "relative tables": ({"p.c": SWITCH}, "gcc -O2 -fPIE -o {out} p.c"),
    "absolute tables": ({"p.c": SWITCH}, "gcc -O2 -no-pie -fno-pie -o {out} p.c"),
    "tables, unoptimised": ({"p.c": SWITCH}, "gcc -O0 -o {out} p.c"),
    "tables by clang": ({"p.c": SWITCH}, "clang -O0 -o {out} p.c"),
    "tables beside code": ({"p.c": SWITCH}, "gcc -O2 -no-pie -fno-pie -Wl,-z,noseparate-code -o {out} p.c"),
    "computed goto": ({"p.c": GOTO}, "gcc -O2 -o {out} p.c"),
    "computed goto, unoptimised": ({"p.c": GOTO}, "gcc -O0 -no-pie -fno-pie -o {out} p.c"),
    "exceptions": ({"p.cc": CXX}, "g++ -O2 -o {out} p.cc"),
    "exceptions, unoptimised": ({"p.cc": CXX}, "g++ -O0 -o {out} p.cc"),
    "varargs": ({"p.c": VARARGS}, "gcc -O0 -o {out} p.c"),
    "tail calls": ({"p.c": TAIL}, "gcc -O2 -o {out} p.c"),
    "register use across calls": ({"p.c": IPA}, "gcc -O2 -fipa-ra -o {out} p.c"),
    "threads and atomics": ({"p.c": THREADS}, "gcc -O2 -pthread -o {out} p.c"),
    "control-flow protection": ({"p.c": SWITCH}, "gcc -O2 -fcf-protection=full -Wl,-z,ibt,-z,shstk -o {out} p.c"),
    "stack protector": (PLAIN, "gcc -O2 -fstack-protector-all -o {out} p.c"),
    "stack clash": (PLAIN, "gcc -O2 -fstack-clash-protection -o {out} p.c"),
    "signal handler and leaf functions": ({"p.c": SIGNALS}, "gcc -O2 -o {out} p.c"),
    "signal handler, unoptimised": ({"p.c": SIGNALS}, "gcc -O0 -o {out} p.c"),
    "resolver functions": ({"p.c": IFUNC}, "gcc -O2 -o {out} p.c"),
    "resolver functions, static": ({"p.c": IFUNC}, "gcc -O2 -static -o {out} p.c"),
    "data inside code": ({"p.c": DATA}, "gcc -O2 -no-pie -o {out} p.c"),
    "debug data": (PLAIN, "gcc -g -gdwarf64 -o {out} p.c"),
    "kept relocations": (PLAIN, "gcc -O2 -Wl,-q -o {out} p.c"),
    "packed relocations": (PLAIN, "gcc -O2 -Wl,-z,pack-relative-relocs -o {out} p.c"),
    "profiled": (PLAIN, "gcc -pg -o {out} p.c"),
    "coverage": (PLAIN, "gcc -O1 --coverage -o {out} p.c"),
    "large pages": (PLAIN, "gcc -Wl,-z,max-page-size=2097152 -o {out} p.c"),
    "sanitised": (PLAIN, "gcc -O1 -fsanitize=undefined -o {out} p.c"),
    "link-time optimisation": (PLAIN, "gcc -O2 -flto -o {out} p.c"),
    "large model": ({"p.c": SWITCH}, "gcc -O1 -mcmodel=large -fno-pie -no-pie -o {out} p.c"),
    "no frame table": (PLAIN, "gcc -O1 -fno-asynchronous-unwind-tables -fno-unwind-tables -o {out} p.c"),
    "traced by xray": ({"p.c": SWITCH}, "clang -O1 -fxray-instrument -fxray-instruction-threshold=1 -o {out} p.c"),
    "patchable": (PLAIN, "gcc -O2 -fpatchable-function-entry=8,3 -o {out} p.c"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_programs_run_as_before(build, rewrite, tmp_path, monkeypatch, kind):
    """A program of this kind is accepted, comes out sound, prints the same and ends alike, and is settled."""
    path = build(*KINDS[kind])
    out, again = tmp_path / "p", tmp_path / "again"
    assert rewrite(path, "-o", out) == (0, "")
    require_sound(path, out)
    monkeypatch.chdir(tmp_path)  # some write profiles where they run
    assert told([out]) == told([path])
    assert rewrite(out, "-o", again) == (0, "")
    assert again.read_bytes() == out.read_bytes()


def test_shared_libraries_serve_as_before(build, rewrite, tmp_path):
    """Programs that use a rewritten library behave the same."""
    library = build({"l.c": LIBRARY}, "gcc -O1 -shared -fPIC -o {out} l.c")
    program = build({"u.c": USER}, f"gcc -O1 -o {{out}} u.c {library}")
    out = tmp_path / "p"
    assert rewrite(library, "-o", out) == (0, "")
    require_sound(library, out)
    before = told([program])
    library.rename(tmp_path / "aside")
    out.rename(library)
    assert told([program]) == before
