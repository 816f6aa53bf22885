/* SHA-256 with constants derived from the roots of primes by integer search. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE static __attribute__((noinline))

static uint32_t round_constant[64], initial[8];

NOINLINE uint32_t rotate(uint32_t x, unsigned n) { return x >> n | x << (32 - n); }
NOINLINE uint32_t choose(uint32_t x, uint32_t y, uint32_t z) { return (x & y) ^ (~x & z); }
NOINLINE uint32_t majority(uint32_t x, uint32_t y, uint32_t z) { return (x & y) ^ (x & z) ^ (y & z); }
NOINLINE uint32_t big0(uint32_t x) { return rotate(x, 2) ^ rotate(x, 13) ^ rotate(x, 22); }
NOINLINE uint32_t big1(uint32_t x) { return rotate(x, 6) ^ rotate(x, 11) ^ rotate(x, 25); }
NOINLINE uint32_t small0(uint32_t x) { return rotate(x, 7) ^ rotate(x, 18) ^ x >> 3; }
NOINLINE uint32_t small1(uint32_t x) { return rotate(x, 17) ^ rotate(x, 19) ^ x >> 10; }

/* The first 32 bits of the fraction of the square or cube root of a prime. */
NOINLINE uint32_t root_fraction(uint32_t prime, int cube)
{
    uint64_t root = 0;
    for (uint64_t bit = 1ull << 36; bit != 0; bit >>= 1) {
        unsigned __int128 r = root | bit, value = cube ? r * r * r : r * r;
        if (value <= (unsigned __int128)prime << (cube ? 96 : 64))
            root |= bit;
    }
    return (uint32_t)root;
}

NOINLINE int is_prime(uint32_t n)
{
    for (uint32_t d = 2; d * d <= n; d++)
        if (n % d == 0)
            return 0;
    return 1;
}

NOINLINE void derive_constants(void)
{
    uint32_t prime = 2;
    for (int i = 0; i < 64; prime++) {
        if (!is_prime(prime))
            continue;
        if (i < 8)
            initial[i] = root_fraction(prime, 0);
        round_constant[i++] = root_fraction(prime, 1);
    }
}

NOINLINE void compress(uint32_t *h, const uint8_t *p)
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++, p += 4)
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (int i = 16; i < 64; i++)
        w[i] = small1(w[i - 2]) + w[i - 7] + small0(w[i - 15]) + w[i - 16];
    memcpy(v, h, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t a = v[7] + big1(v[4]) + choose(v[4], v[5], v[6]) + round_constant[i] + w[i];
        uint32_t b = big0(v[0]) + majority(v[0], v[1], v[2]);
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += a;
        v[0] = a + b;
    }
    for (int i = 0; i < 8; i++)
        h[i] += v[i];
}

NOINLINE void print_digest(const uint8_t *p, size_t n)
{
    uint32_t h[8];
    uint8_t last[128] = {0};
    size_t whole = n & ~(size_t)63, rest = n & 63, padded = rest < 56 ? 64 : 128;
    memcpy(h, initial, sizeof h);
    for (size_t i = 0; i < whole; i += 64)
        compress(h, p + i);
    memcpy(last, p + whole, rest);
    last[rest] = 0x80;
    for (int i = 0; i < 8; i++)
        last[padded - 1 - (size_t)i] = (uint8_t)((uint64_t)n * 8 >> 8 * i);
    for (size_t i = 0; i < padded; i += 64)
        compress(h, last + i);
    for (int i = 0; i < 8; i++)
        printf("%08x%s", h[i], i == 7 ? "\n" : "");
}

int main(void)
{
    static uint8_t long_text[1000];

    derive_constants();
    memset(long_text, 'a', sizeof long_text);
    print_digest(long_text, 0);
    print_digest((const uint8_t *)"abc", 3);
    print_digest(long_text, 56);
    print_digest(long_text, sizeof long_text);
    return 0;
}
