/* Population count, parity and leading/trailing zero counts, several ways each. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE int popcount_loop(uint64_t x)
{
    int n = 0;
    while (x != 0) {
        n += (int)(x & 1);
        x >>= 1;
    }
    return n;
}

NOINLINE int popcount_sparse(uint64_t x)
{
    int n = 0;
    for (; x != 0; x &= x - 1)
        n++;
    return n;
}

NOINLINE int popcount_tree(uint64_t x)
{
    x -= (x >> 1) & 0x5555555555555555ull;
    x = (x & 0x3333333333333333ull) + ((x >> 2) & 0x3333333333333333ull);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0full;
    return (int)((x * 0x0101010101010101ull) >> 56);
}

NOINLINE unsigned parity_fold(uint32_t x)
{
    x ^= x >> 16;
    x ^= x >> 8;
    x ^= x >> 4;
    return (0x6996u >> (x & 15)) & 1;
}

NOINLINE unsigned parity_byte(uint8_t x)
{
    x ^= (uint8_t)(x >> 4);
    x ^= (uint8_t)(x >> 2);
    x ^= (uint8_t)(x >> 1);
    return x & 1;
}

NOINLINE int leading_zeros(uint32_t x)
{
    int n = 32;
    for (int shift = 16; shift != 0; shift >>= 1) {
        uint32_t high = x >> shift;
        if (high != 0) {
            n -= shift;
            x = high;
        }
    }
    return n - (int)x;
}

NOINLINE int trailing_zeros(uint32_t x)
{
    if (x == 0)
        return 32;
    int n = 1;
    if ((x & 0xffff) == 0) { n += 16; x >>= 16; }
    if ((x & 0xff) == 0) { n += 8; x >>= 8; }
    if ((x & 0xf) == 0) { n += 4; x >>= 4; }
    if ((x & 3) == 0) { n += 2; x >>= 2; }
    return n - (int)(x & 1);
}

NOINLINE int hamming(uint64_t a, uint64_t b) { return popcount_tree(a ^ b); }

int main(void)
{
    uint64_t x = 0x9e3779b97f4a7c15ull;
    int disagree = 0, total = 0, leading = 0, trailing = 0, distance = 0;
    unsigned parity = 0;

    for (int i = 0; i < 1500; i++) {
        uint64_t previous = x;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        uint64_t sample = x >> (i & 63);
        int count = popcount_tree(sample);
        disagree += count != popcount_loop(sample);
        disagree += count != popcount_sparse(sample);
        disagree += parity_fold((uint32_t)sample) != (unsigned)(popcount_tree((uint32_t)sample) & 1);
        total += count;
        parity += parity_byte((uint8_t)sample);
        leading += leading_zeros((uint32_t)sample);
        trailing += trailing_zeros((uint32_t)sample);
        distance += hamming(previous, x);
    }
    printf("total %d disagree %d parity %u\n", total, disagree, parity);
    printf("leading %d trailing %d distance %d\n", leading, trailing, distance);
    printf("edges %d %d %d %d\n", leading_zeros(0), leading_zeros(1), trailing_zeros(0), trailing_zeros(0x80000000u));
    return 0;
}
