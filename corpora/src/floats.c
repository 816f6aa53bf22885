/* Single, double and small floating-point formats taken apart and put together as integers. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE uint32_t sign_of(uint32_t f) { return f >> 31; }
NOINLINE int exponent(uint32_t f) { return (int)(f >> 23 & 255) - 127; }
NOINLINE uint32_t fraction(uint32_t f) { return f & 0x7fffff; }
NOINLINE uint32_t mantissa(uint32_t f) { return (f & 0x7fffff) | (uint32_t)((f & 0x7f800000) != 0) << 23; }
NOINLINE uint32_t magnitude(uint32_t f) { return f & 0x7fffffff; }
NOINLINE uint32_t compose(uint32_t s, int e, uint32_t m)
{
    return s << 31 | (uint32_t)(e + 127) << 23 | (m & 0x7fffff);
}
NOINLINE int is_nan(uint32_t f) { return (f & 0x7fffffff) > 0x7f800000; }
NOINLINE int is_infinite(uint32_t f) { return f << 1 == 0xff000000u; }
NOINLINE int is_finite(uint32_t f) { return (~f & 0x7f800000) != 0; }
NOINLINE int is_subnormal(uint32_t f) { return (f & 0x7fffffff) - 1 < 0x7fffff; }
NOINLINE int is_zero(uint32_t f) { return f << 1 == 0; }
NOINLINE int32_t total_order(int32_t f) { return f ^ (int32_t)((uint32_t)(f >> 31) >> 1); }
NOINLINE uint32_t sort_key(uint32_t f) { return f ^ ((uint32_t)-(int32_t)(f >> 31) | 0x80000000u); }
NOINLINE uint32_t unsort_key(uint32_t k) { return k ^ (((k >> 31) - 1) | 0x80000000u); }
NOINLINE uint32_t twice(uint32_t f) { return f + (1u << 23); }
NOINLINE uint32_t root_guess(uint32_t f) { return 0x5f3759df - (f >> 1); }
NOINLINE uint32_t next_up(uint32_t f) { return f >> 31 ? f - 1 : f + 1; }
NOINLINE uint16_t to_bfloat(uint32_t f) { return (uint16_t)((f + 0x7fff + (f >> 16 & 1)) >> 16); }
NOINLINE uint32_t from_bfloat(uint16_t b) { return (uint32_t)b << 16; }
NOINLINE uint32_t half_to_single(uint16_t h)
{
    return (uint32_t)(h & 0x8000) << 16 | (((uint32_t)(h & 0x7fff) << 13) + (112u << 23));
}
NOINLINE int distance(int32_t a, int32_t b)
{
    int64_t d = (int64_t)total_order(a) - total_order(b);
    return (int)((d < 0 ? -d : d) >> 8);
}
NOINLINE uint32_t truncated(uint32_t f)
{
    int e = exponent(f);
    return e < 0 ? f & 0x80000000u : e >= 23 ? f : f & ~(0x7fffffu >> e);
}
NOINLINE int32_t to_integer(uint32_t f)
{
    int e = exponent(f);
    if (e < 0 || e > 30)
        return e < 0 ? 0 : INT32_MIN;
    int32_t value = (int32_t)(e <= 23 ? mantissa(f) >> (23 - e) : mantissa(f) << (e - 23));
    return f >> 31 ? -value : value;
}

NOINLINE int exponent64(uint64_t d) { return (int)(d >> 52 & 2047) - 1023; }
NOINLINE uint64_t magnitude64(uint64_t d) { return d << 1 >> 1; }
NOINLINE int is_nan64(uint64_t d) { return d << 1 > 0xffe0000000000000u; }
NOINLINE uint64_t power_of_two(int e) { return (uint64_t)(e + 1023) << 52; }
NOINLINE uint64_t scaled(uint64_t d, int n) { return d + ((uint64_t)(int64_t)n << 52); }
NOINLINE uint64_t sort_key64(uint64_t d) { return d ^ ((uint64_t)((int64_t)d >> 63) | 1ull << 63); }
NOINLINE uint32_t narrowed(uint64_t d)
{
    return (uint32_t)(d >> 32 & 0x80000000u) | (uint32_t)((d >> 29) - (896ull << 23));
}
NOINLINE uint64_t widened(uint32_t f)
{
    return (uint64_t)(f & 0x80000000u) << 32 | (((uint64_t)(f & 0x7fffffff) << 29) + (896ull << 52));
}

static uint64_t digest;

NOINLINE void mix(uint64_t value) { digest = (digest ^ value) * 0x100000001b3u + 1; }

int main(void)
{
    uint32_t f = 0x3f800000, wrong = 0;
    for (int i = 0; i < 2000; i++) {
        f = f * 1664525u + 1013904223u;
        uint32_t g = i % 7 == 0 ? f & 0x807fffff : i % 7 == 1 ? f | 0x7f800000 : (f & 0x8fffffff) | 0x40000000;
        uint64_t d = (uint64_t)g << 29 ^ (uint64_t)g << 32;
        wrong += !is_nan(g) && is_finite(g) == is_infinite(g);
        wrong += unsort_key(sort_key(g)) != g || compose(sign_of(g), exponent(g), fraction(g)) != g;
        mix(mantissa(g) + magnitude(g) + (uint32_t)is_subnormal(g));
        mix((uint32_t)total_order((int32_t)g) ^ (uint32_t)is_zero(g << 9));
        mix(twice(g) + root_guess(g) + next_up(f) + from_bfloat(to_bfloat(g)));
        mix(half_to_single((uint16_t)f) ^ (uint32_t)distance((int32_t)f, (int32_t)g) ^ truncated(g));
        mix((uint64_t)to_integer(g) + (uint64_t)exponent64(d));
        mix(magnitude64(d) + (uint64_t)is_nan64(d) + power_of_two(i % 100 - 50) + scaled(d, i % 5 - 2));
        mix(sort_key64(d) ^ narrowed(d) ^ widened(g));
    }
    printf("pi %d -2.5 %d 1e9 %d ", to_integer(0x40490fdb), to_integer(0xc0200000), to_integer(0x4e6e6b28));
    printf("wrong %u digest %016llx\n", wrong, (unsigned long long)digest);
    return 0;
}
