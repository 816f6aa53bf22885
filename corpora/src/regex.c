/* A backtracking matcher of small patterns: . * + ? ^ $ and classes [a-z]. */
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

static unsigned steps;

NOINLINE const char *class_end(const char *p)
{
    p += 1 + (p[1] == '^');
    while (*++p != ']')
        continue;
    return p + 1;
}

NOINLINE const char *atom_end(const char *p)
{
    if (*p == '[')
        return class_end(p);
    return *p == '\\' ? p + 2 : p + 1;
}

NOINLINE int in_class(const char *p, unsigned char c)
{
    int negated = p[1] == '^', found = 0;
    p += 1 + negated;
    do {
        if (p[1] == '-' && p[2] != ']') {
            found |= (unsigned char)p[0] <= c && c <= (unsigned char)p[2];
            p += 3;
        } else {
            found |= (unsigned char)*p++ == c;
        }
    } while (*p != ']');
    return found != negated;
}

NOINLINE int atom_matches(const char *p, char c)
{
    steps++;
    if (c == '\0')
        return 0;
    if (*p == '[')
        return in_class(p, (unsigned char)c);
    if (*p == '\\')
        return p[1] == 'd' ? c >= '0' && c <= '9' : p[1] == c;
    return *p == '.' || *p == c;
}

static int match_here(const char *p, const char *text);

NOINLINE int match_repeat(const char *atom, const char *rest, const char *text, int least, int most)
{
    int n = 0;
    while (n < most && atom_matches(atom, text[n]))
        n++;
    for (; n >= least; n--) {
        int tail = match_here(rest, text + n);
        if (tail >= 0)
            return n + tail;
    }
    return -1;
}

static int match_here(const char *p, const char *text)
{
    if (*p == '\0')
        return 0;
    if (*p == '$' && p[1] == '\0')
        return *text == '\0' ? 0 : -1;
    const char *end = atom_end(p);
    switch (*end) {
    case '*': return match_repeat(p, end + 1, text, 0, 1000);
    case '+': return match_repeat(p, end + 1, text, 1, 1000);
    case '?': return match_repeat(p, end + 1, text, 0, 1);
    default: return match_repeat(p, end, text, 1, 1);
    }
}

NOINLINE void search(const char *pattern, const char *text)
{
    int anchored = *pattern == '^';
    steps = 0;
    for (int at = 0;; at++) {
        int length = match_here(pattern + anchored, text + at);
        if (length >= 0) {
            printf("%s: at %d '%.*s' in %u\n", pattern, at, length, text + at, steps);
            return;
        }
        if (anchored || text[at] == '\0')
            break;
    }
    printf("%s: no match in %u\n", pattern, steps);
}

int main(void)
{
    static const char text[] = "mov eax, 0x1234abcd ; size=48, cost = -17 cycles";

    search("eax", text);
    search("^eax", text);
    search("0x[0-9a-f]+", text);
    search("[a-z]+ *= *-?\\d+", text);
    search("-\\d+", text);
    search("c.*s$", text);
    search("[^a-z ,]+;?", text);
    search(".*", text);
    search("z+", text);
    search("a?a?a?a?a?aaaaa$", "aaaaa");
    search("^mov +[a-d]?e?ax, .x", text);
    return 0;
}
