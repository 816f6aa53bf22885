/* SHA-1, and a digest of the MD5 structure with generated constants, on single blocks. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE uint32_t rotate(uint32_t x, unsigned n) { return x << n | x >> (32 - n); }
NOINLINE uint32_t select_bits(uint32_t mask, uint32_t a, uint32_t b) { return (mask & a) | (~mask & b); }
NOINLINE uint32_t carry_bits(uint32_t a, uint32_t b, uint32_t c) { return (a & b) | (c & (a | b)); }
NOINLINE uint32_t load_le(const uint8_t *p) { return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24; }
NOINLINE uint32_t load_be(const uint8_t *p) { return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]; }

NOINLINE uint32_t constant(unsigned i)
{
    uint32_t x = (i + 1) * 0x9e3779b9u;
    return (x ^ x >> 15) * 0x85ebca6bu;
}

NOINLINE uint32_t md5_function(unsigned i, uint32_t b, uint32_t c, uint32_t d)
{
    switch (i >> 4) {
    case 0: return select_bits(b, c, d);
    case 1: return select_bits(d, b, c);
    case 2: return b ^ c ^ d;
    default: return c ^ (b | ~d);
    }
}

NOINLINE unsigned md5_word(unsigned i)
{
    static const uint8_t step[] = {1, 5, 3, 7}, start[] = {0, 1, 5, 0};
    return (i * step[i >> 4] + start[i >> 4]) & 15;
}

NOINLINE void md5_block(uint32_t *h, const uint8_t *p)
{
    static const uint8_t turns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3];
    for (unsigned i = 0; i < 64; i++) {
        uint32_t sum = a + md5_function(i, b, c, d) + constant(i) + load_le(p + 4 * md5_word(i));
        a = d;
        d = c;
        c = b;
        b += rotate(sum, turns[i >> 4][i & 3]);
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
}

NOINLINE void sha1_block(uint32_t *h, const uint8_t *p)
{
    static const uint32_t k[] = {0x5a827999u, 0x6ed9eba1u, 0x8f1bbcdcu, 0xca62c1d6u};
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (int i = 0; i < 80; i++)
        w[i] = i < 16 ? load_be(p + 4 * i) : rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (int i = 0; i < 80; i++) {
        uint32_t f = i < 20 ? select_bits(b, c, d) : i >= 40 && i < 60 ? carry_bits(b, c, d) : b ^ c ^ d;
        uint32_t sum = rotate(a, 5) + f + e + k[i / 20] + w[i];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = sum;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

NOINLINE void digest(const char *text)
{
    uint32_t md5[4] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u};
    uint32_t sha1[5] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u, 0xc3d2e1f0u};
    uint8_t block[64] = {0};
    size_t n = strlen(text);
    memcpy(block, text, n);
    block[n] = 0x80;
    block[56] = (uint8_t)(n * 8);
    md5_block(md5, block);
    block[56] = 0;
    block[63] = (uint8_t)(n * 8);
    sha1_block(sha1, block);
    printf("%08x%08x%08x%08x ", md5[0], md5[1], md5[2], md5[3]);
    printf("%08x%08x%08x%08x%08x '%s'\n", sha1[0], sha1[1], sha1[2], sha1[3], sha1[4], text);
}

int main(void)
{
    digest("");
    digest("a");
    digest("abc");
    digest("short message of one block");
    return 0;
}
