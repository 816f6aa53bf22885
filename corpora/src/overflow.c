/* Overflow and carry detected before, during and after the operation, in every width. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE int add_over8(int8_t a, int8_t b) { return (int8_t)(a + b) != a + b; }
NOINLINE int add_over16(int16_t a, int16_t b) { return a + b > INT16_MAX || a + b < INT16_MIN; }
NOINLINE int add_over32(uint32_t a, uint32_t b) { return ((a ^ (a + b)) & (b ^ (a + b))) >> 31; }
NOINLINE int add_over_before(int32_t a, int32_t b) { return b > 0 ? a > INT32_MAX - b : a < INT32_MIN - b; }
NOINLINE int add_over_wide(int32_t a, int32_t b) { return (int64_t)a + b != (int32_t)((int64_t)a + b); }
NOINLINE int add_over_built(int32_t a, int32_t b)
{
    int32_t sum;
    return __builtin_add_overflow(a, b, &sum);
}
NOINLINE int add_over64(uint64_t a, uint64_t b) { return (int64_t)(~(a ^ b) & (a ^ (a + b))) < 0; }
NOINLINE int sub_over32(uint32_t a, uint32_t b) { return ((a ^ b) & (a ^ (a - b))) >> 31; }
NOINLINE int sub_over64(uint64_t a, uint64_t b) { return (int64_t)((a ^ b) & ~(b ^ (a - b))) < 0; }
NOINLINE int carry8(uint8_t a, uint8_t b) { return a + b > 255; }
NOINLINE int carry32(uint32_t a, uint32_t b) { return a > ~b; }
NOINLINE int carry64(uint64_t a, uint64_t b) { return a + b < a; }
NOINLINE int carry_by_logic(uint64_t a, uint64_t b) { return (int)(((a & b) | ((a | b) & ~(a + b))) >> 63); }
NOINLINE int borrow8(uint8_t a, uint8_t b) { return (a - b) >> 8 & 1; }
NOINLINE int borrow64(uint64_t a, uint64_t b) { return a - b > a; }
NOINLINE int mul_over8(int8_t a, int8_t b) { return a * b != (int8_t)(a * b); }
NOINLINE int mul_over16(uint16_t a, uint16_t b) { return (uint32_t)a * b >> 16 != 0; }
NOINLINE int mul_over32(uint32_t a, uint32_t b) { return (uint64_t)a * b > UINT32_MAX; }
NOINLINE int mul_over_signed(int32_t a, int32_t b)
{
    int64_t product = (int64_t)a * b;
    return (product >> 31) != (product >> 63);
}
NOINLINE int mul_over64(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product);
}
NOINLINE int neg_over8(int8_t x) { return x == INT8_MIN; }
NOINLINE int neg_over64(uint64_t x) { return x == 0 - x && x != 0; }
NOINLINE int abs_over(uint32_t x) { return (int32_t)(x & (0 - x)) < 0; }
NOINLINE int left_over(uint32_t x, unsigned n) { return x << n >> n != x; }
NOINLINE int left_over_signed(int32_t x, unsigned n) { return (int32_t)((uint32_t)x << n) >> n != x; }
NOINLINE int left_over64(uint64_t x, unsigned n) { return x > ~0ull >> n; }
NOINLINE int32_t add_or(int32_t a, int32_t b, int32_t instead)
{
    int32_t sum;
    return __builtin_add_overflow(a, b, &sum) ? instead : sum;
}
NOINLINE uint64_t sum_or_zero(uint64_t a, uint64_t b) { return a + b < a ? 0 : a + b; }
NOINLINE uint32_t sub_or_zero(uint32_t a, uint32_t b) { return a < b ? 0 : a - b; }
NOINLINE int64_t wrap_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
NOINLINE int32_t wrap_mul(int32_t a, int32_t b) { return (int32_t)((uint32_t)a * (uint32_t)b); }
NOINLINE unsigned nzcv(uint32_t a, uint32_t b)
{
    uint32_t d = a - b;
    return (d >> 31) << 3 | (uint32_t)(d == 0) << 2 | (uint32_t)(a >= b) << 1 | ((a ^ b) & (a ^ d)) >> 31;
}
NOINLINE int less_from_flags(unsigned f) { return (f >> 3 ^ f) & 1; }

static uint64_t digest;

NOINLINE void mix(uint64_t value) { digest = (digest ^ value) * 0x100000001b3u + 1; }

int main(void)
{
    uint64_t seed = 21;
    unsigned wrong = 0;
    for (unsigned i = 0; i < 1500; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t y = (seed ^ seed >> 31) >> (i & 31), z = (seed >> 3) - (1ull << (i & 63));
        uint32_t x = (uint32_t)y, w = (uint32_t)z, n = i & 15;
        int32_t s = (int32_t)x, t = (int32_t)w;
        int8_t a = (int8_t)x, b = (int8_t)w;
        int over = add_over_wide(s, t);
        wrong += add_over32(x, w) != over || add_over_before(s, t) != over || add_over_built(s, t) != over;
        wrong += carry64(y, z) != carry_by_logic(y, z) || less_from_flags(nzcv(x, w)) != (s < t);
        mix((unsigned)(add_over8(a, b) + 2 * add_over16((int16_t)x, (int16_t)w) + 4 * add_over64(y, z)));
        mix((unsigned)(2 * sub_over32(x, w) + 4 * sub_over64(y, z)));
        mix((unsigned)(carry8((uint8_t)x, (uint8_t)w) + 4 * carry32(x, w)));
        mix((unsigned)(borrow8((uint8_t)x, (uint8_t)w) + 2 * borrow64(y, z) + 4 * mul_over8(a, b) + 8 * neg_over8(a)));
        mix((unsigned)(mul_over16((uint16_t)x, (uint16_t)(w & 7)) + 2 * mul_over32(x >> n, w) + 4 * neg_over64(y)));
        mix((unsigned)(mul_over_signed(s >> n, t) + 2 * mul_over64((int64_t)y, t) + 4 * abs_over(x)));
        mix((unsigned)(left_over(x, n) + 2 * left_over_signed(s, n) + 4 * left_over64(y, n)));
        mix((uint64_t)(add_or(s, t, 77)) + sum_or_zero(y, z) + sub_or_zero(x, w));
        mix((uint64_t)(wrap_add((int64_t)y, (int64_t)z) ^ wrap_mul(s, t)));
    }
    printf("wrong %u digest %016llx\n", wrong, (unsigned long long)digest);
    return 0;
}
