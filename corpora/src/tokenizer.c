/* A table-free tokenizer for a C-like language, counting token kinds. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

enum kind { END, NAME, NUMBER, STRING, OPERATOR, BRACKET, COMMENT, BAD, KINDS };

struct token {
    enum kind kind;
    const char *start;
    unsigned length;
    uint32_t value;
};

NOINLINE int is_space(int c) { return c == ' ' || (unsigned)c - '\t' < 5; }
NOINLINE int is_digit(int c) { return (unsigned)c - '0' < 10; }
NOINLINE int is_letter(int c) { return ((unsigned)c | 32) - 'a' < 26 || c == '_'; }
NOINLINE int is_bracket(int c) { return c == '(' || c == ')' || c == '[' || c == ']' || c == '{' || c == '}'; }
NOINLINE int is_operator(int c)
{
    const uint64_t low = 1ull << '+' | 1ull << '-' | 1ull << '*' | 1ull << '/' | 1ull << '%' | 1ull << '&' | 1ull << '<'
                         | 1ull << '=' | 1ull << '>' | 1ull << '!' | 1ull << ';' | 1ull << ',' | 1ull << '?' | 1ull << ':';
    return c < 64 ? (int)(low >> c & 1) : c == '^' || c == '|' || c == '~';
}

NOINLINE uint32_t digit_value(int c) { return (uint32_t)(is_digit(c) ? c - '0' : (c | 32) - 'a' + 10); }

NOINLINE const char *number(const char *p, uint32_t *value)
{
    uint32_t base = 10;
    *value = 0;
    if (p[0] == '0' && (p[1] | 32) == 'x') {
        base = 16;
        p += 2;
    }
    while ((is_digit(*p) || is_letter(*p)) && digit_value(*p) < base)
        *value = *value * base + digit_value(*p++);
    return p;
}

NOINLINE struct token next_token(const char *p)
{
    while (is_space(*p))
        p++;
    struct token t = {BAD, p, 0, 0};
    if (*p == '\0') {
        t.kind = END;
    } else if (is_letter(*p)) {
        t.kind = NAME;
        for (; is_letter(*p) || is_digit(*p); p++)
            t.value = t.value * 31 + (uint8_t)*p;
    } else if (is_digit(*p)) {
        t.kind = NUMBER;
        p = number(p, &t.value);
    } else if (*p == '"') {
        for (p++; *p != '\0' && *p != '"'; p++)
            p += *p == '\\' && p[1] != '\0';
        t.kind = *p == '"' ? STRING : BAD;
        p += *p == '"';
    } else if (*p == '/' && p[1] == '/') {
        t.kind = COMMENT;
        while (*p != '\0' && *p != '\n')
            p++;
    } else if (is_operator(*p)) {
        t.kind = OPERATOR;
        char first = *p++;
        if (*p == '=' || (*p == first && first != ';' && first != ','))
            p++;
    } else {
        t.kind = is_bracket(*p++) ? BRACKET : BAD;
    }
    t.length = (unsigned)(p - t.start);
    return t;
}

int main(void)
{
    static const char source[] = "int main(void) { // entry\n"
                                 "  unsigned x = 0x1fU, y_2 = 1234567; char *s = \"a \\\"quoted\\\" word\";\n"
                                 "  for (int i = 0; i <= 10; i++) { x ^= y_2 << (i & 7); y_2 += x % 17 == 3; }\n"
                                 "  return x != 0 ? ~x && y_2 || 1 : -s[3]; @ $ }\n\"unterminated";
    unsigned counts[KINDS] = {0};
    uint32_t sum = 0;
    struct token t = {BAD, source, 0, 0};

    while (t.kind != END) {
        t = next_token(t.start + t.length);
        counts[t.kind]++;
        sum = sum * 33 + (uint32_t)t.kind * 1000 + t.length + t.value;
        if (t.kind == NUMBER || t.kind == STRING || t.kind == BAD)
            printf("%d %u %.*s\n", (int)t.kind, t.value, (int)t.length, t.start);
    }
    for (int k = 0; k < KINDS; k++)
        printf("%u ", counts[k]);
    printf("sum %08x\n", sum);
    return 0;
}
