/* Absolute value, sign, minimum, maximum, clamps, averages and saturating sums in every width. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE uint8_t sat_add8(uint8_t a, uint8_t b) { return (uint8_t)(a + b > 255 ? 255 : a + b); }
NOINLINE uint16_t sat_add16(uint16_t a, uint16_t b) { return (uint16_t)((a + b) | -((a + b) >> 16)); }
NOINLINE uint32_t sat_add32(uint32_t a, uint32_t b) { return a + b < a ? UINT32_MAX : a + b; }
NOINLINE uint64_t sat_add64(uint64_t a, uint64_t b) { return (a + b) | (uint64_t)-(int64_t)(a + b < a); }
NOINLINE uint8_t sat_sub8(uint8_t a, uint8_t b) { return (uint8_t)((a - b) & -(a >= b)); }
NOINLINE uint32_t sat_sub32(uint32_t a, uint32_t b) { return a > b ? a - b : 0; }
NOINLINE uint64_t sat_sub64(uint64_t a, uint64_t b) { return (a - b) & (uint64_t)-(int64_t)(a >= b); }
NOINLINE int8_t signed_add8(int8_t a, int8_t b) { return (int8_t)(a + b > 127 ? 127 : a + b < -128 ? -128 : a + b); }
NOINLINE int32_t signed_add32(int32_t a, int32_t b)
{
    uint32_t sum = (uint32_t)a + (uint32_t)b, limit = ((uint32_t)a >> 31) + INT32_MAX;
    return (int32_t)(((limit ^ (uint32_t)b) | ~((uint32_t)b ^ sum)) >> 31 == 0 ? limit : sum);
}
NOINLINE int32_t signed_add_wide(int32_t a, int32_t b)
{
    int64_t sum = (int64_t)a + b;
    return (int32_t)(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
}
NOINLINE int64_t signed_sub64(int64_t a, int64_t b)
{
    int64_t difference;
    return __builtin_sub_overflow(a, b, &difference) ? (a >> 63) ^ INT64_MAX : difference;
}
NOINLINE int32_t sat_negate(int32_t x) { return x == INT32_MIN ? INT32_MAX : -x; }
NOINLINE uint32_t abs32(int32_t x) { return ((uint32_t)x ^ (uint32_t)(x >> 31)) - (uint32_t)(x >> 31); }
NOINLINE uint64_t abs64(int64_t x) { return x < 0 ? 0 - (uint64_t)x : (uint64_t)x; }
NOINLINE uint32_t abs_difference(uint32_t a, uint32_t b) { return a > b ? a - b : b - a; }
NOINLINE uint8_t abs_difference8(uint8_t a, uint8_t b) { return (uint8_t)((a > b ? a : b) - (a > b ? b : a)); }
NOINLINE uint64_t signed_distance(int64_t a, int64_t b)
{
    return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}
NOINLINE int sign32(int32_t x) { return (x >> 31) | (int)((0u - (uint32_t)x) >> 31); }
NOINLINE int sign64(int64_t x) { return x < 0 ? -1 : x > 0; }
NOINLINE int32_t min32(int32_t a, int32_t b) { return b ^ ((a ^ b) & -(a < b)); }
NOINLINE uint32_t max32(uint32_t a, uint32_t b) { return a > b ? a : b; }
NOINLINE int64_t max64(int64_t a, int64_t b) { return a < b ? b : a; }
NOINLINE int16_t min16(int16_t a, int16_t b) { return a < b ? a : b; }
NOINLINE int32_t max_zero(int32_t x) { return x & ~(x >> 31); }
NOINLINE int64_t min_zero(int64_t x) { return x & (x >> 63); }
NOINLINE int32_t least3(int32_t a, int32_t b, int32_t c) { return a < b ? (a < c ? a : c) : b < c ? b : c; }
NOINLINE int32_t median(int32_t a, int32_t b, int32_t c)
{
    int32_t low = a < b ? a : b, high = a < b ? b : a;
    return c < low ? low : c > high ? high : c;
}
NOINLINE int32_t clamp(int32_t x, int32_t low, int32_t high) { return x < low ? low : x > high ? high : x; }
NOINLINE int64_t clamp_symmetric(int64_t x) { return x > 1000 ? 1000 : x < -1000 ? -1000 : x; }
NOINLINE uint32_t floor_mean(uint32_t a, uint32_t b) { return (a & b) + ((a ^ b) >> 1); }
NOINLINE uint32_t ceil_mean(uint32_t a, uint32_t b) { return (a | b) - ((a ^ b) >> 1); }
NOINLINE int32_t signed_mean(int32_t a, int32_t b) { return (a & b) + ((a ^ b) >> 1); }
NOINLINE int64_t ceil_mean64(int64_t a, int64_t b) { return (a | b) - ((a ^ b) >> 1); }
NOINLINE uint8_t mean8(uint8_t a, uint8_t b) { return (uint8_t)((a + b + 1) >> 1); }
NOINLINE int32_t with_sign_of(int32_t x, int32_t s) { return (x ^ (s >> 31)) - (s >> 31); }

static uint64_t digest;

NOINLINE void mix(int64_t value) { digest = (digest ^ (uint64_t)value) * 0x100000001b3u + 1; }

int main(void)
{
    uint64_t seed = 13;
    unsigned wrong = 0;
    for (unsigned i = 0; i < 1500; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t y = (seed ^ seed >> 31) >> (i & 31), z = (seed >> 3) - (1ull << (i & 63));
        int64_t p = (int64_t)y, q = (int64_t)z;
        uint32_t x = (uint32_t)y, w = (uint32_t)z;
        int32_t s = (int32_t)x, t = (int32_t)w, r = s >> 9;
        uint8_t a = (uint8_t)x, b = (uint8_t)w;
        wrong += signed_add32(s, t) != signed_add_wide(s, t) || floor_mean(x, w) != (uint32_t)(((uint64_t)x + w) >> 1);
        wrong += min32(s, t) != (s < t ? s : t) || sign32(s) != sign64(s) || abs32(s) != (uint32_t)abs64(s);
        mix(sat_add8(a, b) ^ sat_add16((uint16_t)x, (uint16_t)w) ^ (int64_t)sat_add32(x, w) ^ sat_sub8(a, b));
        mix((int64_t)(sat_add64(y << (i & 31), z) ^ sat_sub64(y, z) ^ sat_sub32(x, w)));
        mix(signed_sub64(p, q) ^ sat_negate(s) ^ abs_difference(x, w));
        mix((int64_t)(abs_difference8(a, b) ^ signed_distance(p, q)) ^ max32(x, w) ^ max64(p, q));
        mix(min16((int16_t)x, (int16_t)w) ^ max_zero(s) ^ min_zero(q) ^ least3(s, t, r));
        mix((int64_t)median(s, t, r) ^ clamp(s, -500, t & 4095) ^ clamp_symmetric(q));
        mix((int64_t)ceil_mean(x, w) ^ signed_mean(s, t) ^ ceil_mean64(p, q) ^ mean8(a, b));
        mix(with_sign_of(r, t) ^ signed_add8((int8_t)a, (int8_t)b));
    }
    printf("wrong %u digest %016llx\n", wrong, (unsigned long long)digest);
    return 0;
}
