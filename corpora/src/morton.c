/* Morton codes, Gray codes, Hilbert curve and bit permutations. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE uint32_t spread2(uint16_t v)
{
    uint32_t x = v;
    x = (x | x << 8) & 0x00ff00ffu;
    x = (x | x << 4) & 0x0f0f0f0fu;
    x = (x | x << 2) & 0x33333333u;
    return (x | x << 1) & 0x55555555u;
}

NOINLINE uint16_t gather2(uint32_t x)
{
    x &= 0x55555555u;
    x = (x | x >> 1) & 0x33333333u;
    x = (x | x >> 2) & 0x0f0f0f0fu;
    x = (x | x >> 4) & 0x00ff00ffu;
    return (uint16_t)(x | x >> 8);
}

NOINLINE uint32_t spread3(uint32_t x)
{
    x &= 0x3ff;
    x = (x | x << 16) & 0x030000ffu;
    x = (x | x << 8) & 0x0300f00fu;
    x = (x | x << 4) & 0x030c30c3u;
    return (x | x << 2) & 0x09249249u;
}

NOINLINE uint32_t morton2(uint16_t x, uint16_t y) { return spread2(x) | spread2(y) << 1; }
NOINLINE uint32_t morton3(uint32_t x, uint32_t y, uint32_t z) { return spread3(x) | spread3(y) << 1 | spread3(z) << 2; }
NOINLINE uint32_t to_gray(uint32_t x) { return x ^ x >> 1; }

NOINLINE uint32_t from_gray(uint32_t x)
{
    for (int shift = 1; shift < 32; shift <<= 1)
        x ^= x >> shift;
    return x;
}

NOINLINE uint32_t hilbert(uint32_t x, uint32_t y, uint32_t side)
{
    uint32_t distance = 0;
    for (uint32_t s = side / 2; s > 0; s /= 2) {
        uint32_t rx = (x & s) != 0, ry = (y & s) != 0;
        distance += s * s * ((3 * rx) ^ ry);
        if (ry == 0) {
            if (rx == 1) {
                x = side - 1 - x;
                y = side - 1 - y;
            }
            uint32_t t = x;
            x = y;
            y = t;
        }
    }
    return distance;
}

NOINLINE uint32_t compress_bits(uint32_t x, uint32_t mask)
{
    uint32_t result = 0;
    for (uint32_t bit = 1; mask != 0; mask &= mask - 1, bit <<= 1)
        result |= x & mask & -mask ? bit : 0;
    return result;
}

NOINLINE uint32_t expand_bits(uint32_t x, uint32_t mask)
{
    uint32_t result = 0;
    for (; mask != 0; mask &= mask - 1, x >>= 1)
        result |= x & 1 ? mask & -mask : 0;
    return result;
}

NOINLINE uint64_t transpose8(uint64_t x)
{
    uint64_t t = (x ^ x >> 7) & 0x00aa00aa00aa00aaull;
    x ^= t ^ t << 7;
    t = (x ^ x >> 14) & 0x0000cccc0000ccccull;
    x ^= t ^ t << 14;
    t = (x ^ x >> 28) & 0x00000000f0f0f0f0ull;
    return x ^ t ^ t << 28;
}

int main(void)
{
    uint32_t errors = 0, sum = 0, x = 1;
    uint64_t wide = 1;

    for (int i = 0; i < 3000; i++) {
        x = x * 1664525u + 1013904223u;
        uint16_t a = (uint16_t)x, b = (uint16_t)(x >> 16);
        uint32_t code = morton2(a, b), mask = x ^ x >> 7;
        errors += gather2(code) != a || gather2(code >> 1) != b;
        errors += from_gray(to_gray(x)) != x;
        errors += expand_bits(compress_bits(x, mask), mask) != (x & mask);
        sum = sum * 9 + (code ^ morton3(a, b, x >> 8) ^ compress_bits(code, mask));
        wide = wide * 31 + x;
        errors += transpose8(transpose8(wide)) != wide;
    }
    printf("errors %u sum %08x transposed %016llx\n", errors, sum, (unsigned long long)transpose8(wide));
    for (uint32_t y = 0; y < 8; y++)
        for (x = 0; x < 8; x++)
            printf("%2u%c", hilbert(x, y, 8), x == 7 ? '\n' : ' ');
    return 0;
}
