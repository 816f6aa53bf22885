/* Parsing and printing of integers in bases 2 to 36, with overflow checks. */
#include <limits.h>
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'Z')
        return c - 'A' + 10;
    return 99;
}

NOINLINE int parse_unsigned(const char *text, unsigned base, uint32_t *out)
{
    uint32_t value = 0;
    if (*text == '\0')
        return 0;
    for (; *text != '\0'; text++) {
        unsigned digit = (unsigned)digit_of(*text);
        if (digit >= base)
            return 0;
        uint64_t wide = (uint64_t)value * base + digit;
        if (wide > UINT32_MAX)
            return 0;
        value = (uint32_t)wide;
    }
    *out = value;
    return 1;
}

NOINLINE int parse_signed(const char *text, int32_t *out)
{
    int negative = *text == '-';
    uint32_t magnitude;
    if (!parse_unsigned(text + (negative || *text == '+'), 10, &magnitude))
        return 0;
    if (magnitude > (uint32_t)INT32_MAX + (uint32_t)negative)
        return 0;
    *out = negative ? (int32_t)(0u - magnitude) : (int32_t)magnitude;
    return 1;
}

NOINLINE unsigned format_unsigned(uint64_t value, unsigned base, char *out)
{
    char reversed[65];
    unsigned length = 0;
    do {
        reversed[length++] = "0123456789abcdefghijklmnopqrstuvwxyz"[value % base];
        value /= base;
    } while (value != 0);
    for (unsigned i = 0; i < length; i++)
        out[i] = reversed[length - 1 - i];
    out[length] = '\0';
    return length;
}

NOINLINE unsigned format_signed(int64_t value, char *out)
{
    if (value >= 0)
        return format_unsigned((uint64_t)value, 10, out);
    *out = '-';
    return 1 + format_unsigned(0 - (uint64_t)value, 10, out + 1);
}

NOINLINE unsigned digits_in(uint32_t value)
{
    return 1 + (value > 9) + (value > 99) + (value > 999) + (value > 9999) + (value > 99999) + (value > 999999)
           + (value > 9999999) + (value > 99999999) + (value > 999999999);
}

int main(void)
{
    static const char *const texts[] = {"0", "42", "-2147483648", "2147483648", "+7", "", "12x", "-", "2147483647"};
    char buffer[70];
    unsigned lengths = 0, mismatches = 0;

    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        int32_t value = 0;
        int ok = parse_signed(texts[i], &value);
        printf("'%s' -> %d %d\n", texts[i], ok, value);
    }
    for (uint32_t i = 0, x = 1; i < 2000; i++, x = x * 69069u + 1u) {
        uint32_t value = x >> (i & 31), back = 0;
        unsigned base = 2 + i % 35;
        lengths += format_unsigned(value, base, buffer);
        mismatches += !parse_unsigned(buffer, base, &back) || back != value;
        mismatches += format_unsigned(value, 10, buffer) != digits_in(value);
    }
    printf("lengths %u mismatches %u\n", lengths, mismatches);
    format_signed(INT64_MIN, buffer);
    puts(buffer);
    format_unsigned(UINT64_MAX, 36, buffer);
    puts(buffer);
    return 0;
}
