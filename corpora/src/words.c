/* Bytes and halves packed in 64-bit words: sums, comparisons, searches, counts, bit-matrix transposes. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

#define LOW 0x0101010101010101u
#define HIGH 0x8080808080808080u
#define REST 0x7f7f7f7f7f7f7f7fu

NOINLINE uint64_t add_bytes(uint64_t a, uint64_t b) { return ((a & REST) + (b & REST)) ^ ((a ^ b) & HIGH); }
NOINLINE uint64_t sub_bytes(uint64_t a, uint64_t b) { return ((a | HIGH) - (b & REST)) ^ ((a ^ ~b) & HIGH); }
NOINLINE uint64_t average_down(uint64_t a, uint64_t b) { return (a & b) + (((a ^ b) >> 1) & REST); }
NOINLINE uint64_t average_up(uint64_t a, uint64_t b) { return (a | b) - (((a ^ b) >> 1) & REST); }
NOINLINE uint64_t negate_bytes(uint64_t a) { return (HIGH - (a & REST)) ^ (~a & HIGH); }
NOINLINE uint64_t zero_flags(uint64_t a) { return ~(((a & REST) + REST) | a | REST); }
NOINLINE uint64_t equal_flags(uint64_t a, uint64_t b)
{
    uint64_t x = a ^ b;
    return ~(((x & REST) + REST) | x | REST);
}
NOINLINE uint64_t below_flags(uint64_t a, uint64_t b)
{
    uint64_t d = (a | HIGH) - (b & REST);
    return ((~a & b) | (~(a ^ b) & ~d)) & HIGH;
}
NOINLINE uint64_t widen_flags(uint64_t flags) { return (flags << 1) - (flags >> 7); }
NOINLINE uint64_t select_bytes(uint64_t mask, uint64_t a, uint64_t b) { return b ^ ((a ^ b) & mask); }
NOINLINE int has_zero(uint64_t a) { return ((a - LOW) & ~a & HIGH) != 0; }
NOINLINE int has_byte(uint64_t a, uint8_t b) { return has_zero(a ^ b * LOW); }
NOINLINE unsigned first_flag(uint64_t flags) { return (unsigned)__builtin_ctzll(flags | 1ull << 63) >> 3; }
NOINLINE unsigned sum_bytes(uint64_t a)
{
    a = (a & 0x00ff00ff00ff00ffu) + (a >> 8 & 0x00ff00ff00ff00ffu);
    return (unsigned)(a * 0x0001000100010001u >> 48);
}
NOINLINE uint64_t shift_bytes_left(uint64_t a) { return a << 3 & 0xf8f8f8f8f8f8f8f8u; }
NOINLINE uint64_t shift_bytes_right(uint64_t a) { return a >> 5 & 0x0707070707070707u; }
NOINLINE uint64_t add_halves(uint64_t a, uint64_t b)
{
    return ((a & 0x7fff7fff7fff7fffu) + (b & 0x7fff7fff7fff7fffu)) ^ ((a ^ b) & 0x8000800080008000u);
}
NOINLINE uint32_t add_nibbles(uint32_t a, uint32_t b)
{
    return ((a & 0x77777777) + (b & 0x77777777)) ^ ((a ^ b) & 0x88888888u);
}
NOINLINE uint64_t lower_case(uint64_t a)
{
    uint64_t rest = a & REST;
    uint64_t letters = (rest + 63 * LOW) & ~(rest + 37 * LOW) & ~a & HIGH;
    return a | letters >> 2;
}
NOINLINE unsigned count_bits(uint64_t x)
{
    x -= x >> 1 & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
    return (unsigned)(((x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu) * LOW >> 56);
}
NOINLINE unsigned parity(uint64_t x)
{
    x ^= x >> 32;
    x ^= x >> 16;
    x ^= x >> 8;
    return 0x6996u >> ((x ^ x >> 4) & 15) & 1;
}
NOINLINE uint64_t digits8(uint64_t a)
{
    a = (a & 0x0f0f0f0f0f0f0f0fu) * 2561 >> 8;
    a = (a & 0x00ff00ff00ff00ffu) * 6553601 >> 16;
    return (a & 0x0000ffff0000ffffu) * 42949672960001u >> 32;
}
NOINLINE uint64_t to_hex(uint32_t x)
{
    uint64_t v = (x & 0xffffull) | (uint64_t)(x >> 16) << 32;
    v = (v & 0x000000ff000000ffu) | (v & 0x0000ff000000ff00u) << 8;
    v = (v & 0x000f000f000f000fu) | (v & 0x00f000f000f000f0u) << 4;
    return v + '0' * LOW + ((v + 6 * LOW) >> 4 & LOW) * 39;
}
NOINLINE uint64_t transpose(uint64_t x)
{
    uint64_t t = (x ^ x >> 7) & 0x00aa00aa00aa00aau;
    x ^= t ^ t << 7;
    t = (x ^ x >> 14) & 0x0000cccc0000ccccu;
    x ^= t ^ t << 14;
    t = (x ^ x >> 28) & 0x00000000f0f0f0f0u;
    return x ^ t ^ t << 28;
}
NOINLINE uint64_t interleave(uint32_t x)
{
    uint64_t v = (x | (uint64_t)x << 16) & 0x0000ffff0000ffffu;
    v = (v | v << 8) & 0x00ff00ff00ff00ffu;
    v = (v | v << 4) & 0x0f0f0f0f0f0f0f0fu;
    v = (v | v << 2) & 0x3333333333333333u;
    return (v | v << 1) & 0x5555555555555555u;
}
NOINLINE uint8_t column(uint64_t x) { return (uint8_t)((x & LOW) * 0x0102040810204080u >> 56); }

static uint64_t digest;

NOINLINE void mix(uint64_t value) { digest = (digest ^ value) * 0x100000001b3u + 1; }

int main(void)
{
    uint64_t a = 5, wrong = 0;
    for (unsigned i = 0; i < 1500; i++) {
        uint64_t b = a ^ a >> (i & 31);
        a = a * 6364136223846793005u + 1442695040888963407u;
        uint64_t mask = widen_flags(below_flags(a, b));
        wrong += add_bytes(sub_bytes(a, b), b) != a || sub_bytes(0, a) != negate_bytes(a);
        wrong += transpose(transpose(a)) != a;
        wrong += (count_bits(a) & 1) != parity(a) || has_zero(b) != (zero_flags(b) != 0) || sum_bytes(mask & LOW) > 8;
        mix(average_down(a, b) ^ average_up(a, b) ^ equal_flags(a, b) ^ select_bytes(mask, a, b));
        mix((uint64_t)(has_byte(a, (uint8_t)i)) + first_flag(mask & HIGH));
        mix(shift_bytes_left(a) ^ shift_bytes_right(b) ^ add_halves(a, b) ^ add_nibbles((uint32_t)a, (uint32_t)b));
        mix(lower_case(a) ^ to_hex((uint32_t)a) ^ interleave((uint32_t)a) << 1);
        mix(column(a));
    }
    printf("%llu ", (unsigned long long)digits8(0x3837363534333231u));
    printf("wrong %llu digest %016llx\n", (unsigned long long)wrong, (unsigned long long)digest);
    return 0;
}
