/* UTF-8 and UTF-16 encoding and decoding of code points, with validation. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))
#define INVALID 0xffffffffu

NOINLINE int encode(uint32_t c, uint8_t *out)
{
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (uint8_t)(0xc0 | c >> 6);
        out[1] = (uint8_t)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (uint8_t)(0xe0 | c >> 12);
        out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
        out[2] = (uint8_t)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (uint8_t)(0xf0 | c >> 18);
    out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
    out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
    out[3] = (uint8_t)(0x80 | (c & 0x3f));
    return 4;
}

NOINLINE int sequence_length(uint8_t lead)
{
    if (lead < 0x80)
        return 1;
    if ((lead & 0xe0) == 0xc0)
        return 2;
    if ((lead & 0xf0) == 0xe0)
        return 3;
    return (lead & 0xf8) == 0xf0 ? 4 : 0;
}

NOINLINE int is_surrogate(uint32_t c) { return (c & 0xfffff800u) == 0xd800; }
NOINLINE int is_continuation(uint8_t b) { return (b & 0xc0) == 0x80; }

NOINLINE uint32_t decode(const uint8_t *p, size_t n, int *used)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    int length = sequence_length(p[0]);
    *used = 1;
    if (length == 0 || (size_t)length > n)
        return INVALID;
    uint32_t c = length == 1 ? p[0] : p[0] & (0xffu >> (length + 1));
    for (int i = 1; i < length; i++) {
        if (!is_continuation(p[i]))
            return INVALID;
        c = c << 6 | (p[i] & 0x3fu);
    }
    if (c < least[length] || c > 0x10ffff || is_surrogate(c))
        return INVALID;
    *used = length;
    return c;
}

NOINLINE uint32_t to_utf16(uint32_t c)
{
    if (c < 0x10000)
        return c;
    c -= 0x10000;
    return (0xd800u + (c >> 10)) << 16 | (0xdc00u + (c & 0x3ff));
}

NOINLINE uint32_t from_utf16(uint32_t pair)
{
    return pair < 0x10000 ? pair : 0x10000 + ((pair >> 16 & 0x3ff) << 10) + (pair & 0x3ff);
}

int main(void)
{
    static const uint8_t broken[] = {0x41, 0xc0, 0x80, 0xed, 0xa0, 0x80, 0xe2, 0x82, 0xac, 0xff, 0xf0, 0x9f, 0x98};
    int lengths[5] = {0}, errors = 0, used;
    uint32_t sum = 0;

    for (uint32_t c = 0; c < 0x110000; c += 1 + (c >> 6)) {
        uint8_t bytes[4];
        int n = encode(c, bytes);
        uint32_t back = decode(bytes, (size_t)n, &used);
        errors += back != c && !is_surrogate(c);
        errors += from_utf16(to_utf16(c)) != c;
        lengths[n]++;
        sum = sum * 31 + back;
    }
    printf("lengths %d %d %d %d errors %d sum %08x\n", lengths[1], lengths[2], lengths[3], lengths[4], errors, sum);
    for (size_t at = 0; at < sizeof broken; at += (size_t)used) {
        uint32_t c = decode(broken + at, sizeof broken - at, &used);
        if (c == INVALID)
            printf("bad ");
        else
            printf("U+%04X ", c);
    }
    printf("\n");
    return 0;
}
