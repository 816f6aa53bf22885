/* Truth values as numbers: conjunctions, sums and selections of comparisons. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE int both_less(int a, int b, int c, int d) { return a < b && c < d; }
NOINLINE int one_less(unsigned a, unsigned b, unsigned c, unsigned d) { return (a < b) ^ (c < d); }
NOINLINE int weighted(int64_t a, int64_t b) { return (a < b) * 4 + (a == b) * 2 + (b == 0); }
NOINLINE int compare64(int64_t a, int64_t b) { return (a > b) - (a < b); }
NOINLINE int compare8(uint8_t a, uint8_t b) { return a - b; }
NOINLINE int compare16(int16_t a, int16_t b) { return a < b ? -1 : a > b; }
NOINLINE int compare32(uint32_t a, uint32_t b) { return a < b ? -1 : a != b ? 1 : 0; }
NOINLINE int none(uint32_t a, uint32_t b) { return !a && !b; }
NOINLINE int all(uint32_t a, uint32_t b, uint32_t c) { return a && b && c; }
NOINLINE int all_equal(int a, int b, int c) { return a == b && b == c; }
NOINLINE int sorted(int a, int b, int c) { return a <= b && b <= c; }
NOINLINE int is_letter(int c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
NOINLINE int is_hex(unsigned char c) { return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'f'); }
NOINLINE int is_vowel(unsigned c) { return c - 'a' < 26 && (0x104111u >> (c - 'a') & 1); }
NOINLINE int is_edge8(int8_t x) { return x == -128 || x == 127; }
NOINLINE int is_edge(int32_t x) { return x == INT32_MIN || x == INT32_MAX; }
NOINLINE int is_all_ones(uint64_t x) { return x == UINT64_MAX; }
NOINLINE int is_even_and_positive(int x) { return x > 0 && (x & 1) == 0; }
NOINLINE int opposite_signs(int32_t a, int32_t b) { return (a ^ b) < 0; }
NOINLINE int leap(unsigned y) { return (y & 3) == 0 && (y % 25 != 0 || (y & 15) == 0); }
NOINLINE int implies(int a, int b) { return !a || b; }
NOINLINE int at_least_two(int a, int b, int c) { return (a && b) || (c && (a || b)); }
NOINLINE int full_sum(int a, int b, int c) { return (a != 0) ^ (b != 0) ^ (c != 0); }
NOINLINE unsigned pack(int a, int b, int c, int d) { return (a > 0) | (b > 0) << 1 | (c < 0) << 2 | (d == 0) << 3; }
NOINLINE int choose(int flag, int a, int b) { return flag ? a : b; }
NOINLINE uint64_t choose_bit(uint64_t flags, uint64_t a, uint64_t b) { return flags & 0x40 ? a : b; }
NOINLINE uint32_t subtract_unless(uint32_t x, uint32_t y, int flag) { return flag ? x : x - y; }
NOINLINE int five_or_nine(int a, int b) { return a < b ? 5 : 9; }
NOINLINE int ten_or_minus_ten(unsigned x) { return x & 8 ? 10 : -10; }
NOINLINE int rank(int x) { return x > 90 ? 4 : x > 70 ? 3 : x > 50 ? 2 : x > 20; }
NOINLINE int inside(int x, int y, int w, int h) { return x >= 0 && y >= 0 && x < w && y < h; }
NOINLINE int overlap(int a, int b, int c, int d) { return a <= d && c <= b; }
NOINLINE uint8_t carry_flag(uint8_t a, uint8_t b) { return (uint8_t)(a + b) < a; }
NOINLINE uint8_t half_carry(uint8_t a, uint8_t b) { return (a ^ b ^ (a + b)) >> 4 & 1; }
NOINLINE uint8_t status(uint8_t x) { return (uint8_t)((x & 0x80) | (x == 0) << 6 | (x & 0x28)); }
NOINLINE int sees(uint32_t have, uint32_t need, uint32_t refuse) { return (have & need) == need && !(have & refuse); }

static uint64_t digest;

NOINLINE void mix(int64_t value) { digest = (digest ^ (uint64_t)value) * 0x100000001b3u + 1; }

int main(void)
{
    uint32_t x = 5, leaps = 0;
    for (int i = 0; i < 2000; i++) {
        x = x * 1664525u + 1013904223u;
        int a = (int)(x >> 24) % 9 - 4, b = (int)(x >> 20) % 9 - 4, c = (int)(x >> 12) % 7 - 3, d = i % 131;
        uint32_t ua = (uint32_t)a, ub = (uint32_t)b, uc = (uint32_t)c;
        int64_t edge = i & 1 ? (int64_t)(x | (1ull << 63)) : (int64_t)(~0ull >> (i & 31));
        mix(both_less(a, b, c, d) + 4 * one_less(ua, ub, uc, 2));
        mix(weighted(a, b) + 8 * compare64(edge, b) + compare8((uint8_t)a, (uint8_t)c) * 32);
        mix(compare16((int16_t)a, (int16_t)b) + 4 * compare32(ua, uc));
        mix(none(ua, ub) + 2 * all(ua, ub, uc) + 8 * all_equal(a, b, c));
        mix(sorted(a, b, c) + 2 * is_letter(d) + 8 * is_hex((unsigned char)d));
        mix(is_vowel((unsigned)d) + 2 * is_edge8((int8_t)d) + 4 * is_edge((int32_t)edge));
        mix(is_all_ones((uint64_t)edge) + 2 * is_even_and_positive(a) + 4 * opposite_signs(a, b));
        mix(implies(a, b) + 2 * at_least_two(a, b, c) + 4 * full_sum(a, b, c) + 8 * (int)pack(a, b, c, d));
        mix(choose(a & 1, b, c) + (int64_t)choose_bit(x, ua, ub) + subtract_unless(ua, ub, c));
        mix(five_or_nine(a, b) + ten_or_minus_ten(x) + rank(d) * 1024 + overlap(a, b, c, d % 5));
        mix(inside(a, b, 3, 4) + 2 * carry_flag((uint8_t)x, (uint8_t)a) + 4 * half_carry((uint8_t)x, (uint8_t)b));
        mix(status((uint8_t)a) * 2 + sees(x, ua & 7, uc & 24));
        leaps += (uint32_t)leap((unsigned)i);
    }
    printf("leaps %u digest %016llx\n", leaps, (unsigned long long)digest);
    return 0;
}
