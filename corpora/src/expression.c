/* A precedence-climbing evaluator of 32-bit integer expressions. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

static const char *cursor;
static int failed;

NOINLINE char peek(void)
{
    while (*cursor == ' ')
        cursor++;
    return *cursor;
}

NOINLINE int precedence(char c)
{
    switch (c) {
    case '|': return 1;
    case '^': return 2;
    case '&': return 3;
    case '<':
    case '>': return 4;
    case '+':
    case '-': return 5;
    case '*':
    case '/':
    case '%': return 6;
    default: return 0;
    }
}

NOINLINE uint32_t divide(uint32_t a, uint32_t b)
{
    if (b == 0) {
        failed = 1;
        return 0;
    }
    return b == UINT32_MAX ? 0 - a : (uint32_t)((int32_t)a / (int32_t)b);
}

NOINLINE uint32_t shift_right(uint32_t a, uint32_t n)
{
    uint32_t sign = -(a >> 31);
    n &= 31;
    return ((a ^ sign) >> n) ^ sign;
}

NOINLINE uint32_t apply(char op, uint32_t a, uint32_t b)
{
    switch (op) {
    case '|': return a | b;
    case '^': return a ^ b;
    case '&': return a & b;
    case '<': return a << (b & 31);
    case '>': return shift_right(a, b);
    case '+': return a + b;
    case '-': return a - b;
    case '*': return a * b;
    case '/': return divide(a, b);
    default: return a - divide(a, b) * b;
    }
}

static uint32_t expression(int least);

NOINLINE uint32_t primary(void)
{
    char c = peek();
    uint32_t value = 0;
    if (c == '-' || c == '~' || c == '!') {
        cursor++;
        value = primary();
        return c == '-' ? 0 - value : c == '~' ? ~value : value == 0;
    }
    if (c == '(') {
        cursor++;
        value = expression(1);
        failed |= peek() != ')';
        cursor += *cursor == ')';
        return value;
    }
    failed |= c < '0' || c > '9';
    while (*cursor >= '0' && *cursor <= '9')
        value = value * 10 + (uint32_t)(*cursor++ - '0');
    return value;
}

static uint32_t expression(int least)
{
    uint32_t left = primary();
    for (;;) {
        char op = peek();
        int level = precedence(op);
        if (level < least || level == 0)
            return left;
        cursor += op == '<' || op == '>' ? 2 : 1;
        left = apply(op, left, expression(level + 1));
    }
}

NOINLINE void evaluate(const char *text)
{
    cursor = text;
    failed = 0;
    uint32_t value = expression(1);
    failed |= peek() != '\0';
    if (failed)
        printf("%s = error\n", text);
    else
        printf("%s = %d\n", text, (int32_t)value);
}

int main(void)
{
    evaluate("1 + 2 * 3");
    evaluate("(1 + 2) * 3 - -4");
    evaluate("100 / 7 % 5 << 3 | 1");
    evaluate("~0 ^ 255 & 15");
    evaluate("-2147483648 / -1");
    evaluate("-17 / 5 * 1000 + -17 % 5");
    evaluate("!0 + !7 + ((((9))))");
    evaluate("-1000 >> 3 + 1");
    evaluate("65537 * 65537 - 1");
    evaluate("5 / (3 - 3)");
    evaluate("2 + ");
    evaluate("(4 * 5");
    evaluate("1 2");
    return 0;
}
