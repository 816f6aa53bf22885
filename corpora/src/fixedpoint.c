/* 16.16 fixed-point arithmetic: multiply, divide, square root, sine and logarithm. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))
#define ONE 65536

typedef int32_t fixed;

NOINLINE fixed from_int(int32_t x) { return x * ONE; }
NOINLINE int32_t to_int(fixed x) { return x / ONE; }
NOINLINE int32_t round_to_int(fixed x) { return (x + (x < 0 ? -ONE / 2 : ONE / 2)) / ONE; }
NOINLINE fixed multiply(fixed a, fixed b) { return (fixed)((int64_t)a * b / ONE); }
NOINLINE fixed divide(fixed a, fixed b) { return b == 0 ? INT32_MAX : (fixed)((int64_t)a * ONE / b); }
NOINLINE fixed lerp(fixed a, fixed b, fixed t) { return a + multiply(b - a, t); }
NOINLINE fixed clamp(fixed x, fixed low, fixed high) { return x < low ? low : x > high ? high : x; }

NOINLINE uint32_t isqrt(uint64_t x)
{
    uint64_t root = 0;
    for (uint64_t bit = 1ull << 62; bit != 0; bit >>= 2) {
        uint64_t trial = root + bit;
        root >>= 1;
        if (x >= trial) {
            x -= trial;
            root += bit;
        }
    }
    return (uint32_t)root;
}

NOINLINE fixed square_root(fixed x) { return x <= 0 ? 0 : (fixed)isqrt((uint64_t)(uint32_t)x << 16); }

NOINLINE fixed sine(uint16_t angle)
{
    uint32_t quarter = angle & 0x3fff, quadrant = angle >> 14;
    if (quadrant & 1)
        quarter = 0x4000 - quarter;
    fixed t = (fixed)(quarter * 4), square = multiply(t, t);
    fixed value = multiply(t, 102944 - multiply(square, 42334 - multiply(square, 5223 - multiply(square, 297))));
    return quadrant & 2 ? -value : value;
}

NOINLINE fixed log2_of(uint32_t x)
{
    fixed result = 0;
    if (x == 0)
        return INT32_MIN;
    while (x < ONE) {
        x <<= 1;
        result -= ONE;
    }
    while (x >= 2 * ONE) {
        x >>= 1;
        result += ONE;
    }
    for (fixed bit = ONE / 2; bit != 0; bit >>= 1) {
        uint64_t square = (uint64_t)x * x >> 16;
        if (square >= 2 * ONE) {
            square >>= 1;
            result += bit;
        }
        x = (uint32_t)square;
    }
    return result;
}

NOINLINE void print(const char *name, fixed x)
{
    uint32_t magnitude = x < 0 ? 0u - (uint32_t)x : (uint32_t)x;
    printf("%s %s%u.%04u\n", name, x < 0 ? "-" : "", magnitude >> 16, (magnitude & 0xffff) * 10000u >> 16);
}

int main(void)
{
    uint32_t sum = 0;

    print("2.5 * -3", multiply(from_int(5) / 2, from_int(-3)));
    print("1 / 7", divide(ONE, from_int(7)));
    print("sqrt 2", square_root(from_int(2)));
    print("sin 30", sine(0x1555));
    print("sin 270", sine(0xc000));
    print("log2 10", log2_of(10 * ONE));
    print("lerp", lerp(from_int(10), from_int(-20), ONE / 4));
    for (int32_t i = -2000; i < 2000; i++) {
        fixed x = i * 517;
        sum = sum * 17 + (uint32_t)multiply(x, sine((uint16_t)i)) + (uint32_t)round_to_int(x);
        sum += (uint32_t)square_root(x) ^ (uint32_t)log2_of((uint32_t)(i * i + 1));
        sum -= (uint32_t)clamp(divide(x, i - 7), -ONE, from_int(to_int(x) / 2));
    }
    printf("sum %08x isqrt %u\n", sum, isqrt(1000000007ull * 1000000007ull));
    return 0;
}
