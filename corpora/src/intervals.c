/* Interval arithmetic on 32-bit integers: known bounds through operations, and merging. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

struct interval {
    int32_t low, high;
};

NOINLINE int32_t min(int32_t a, int32_t b) { return a < b ? a : b; }
NOINLINE int32_t max(int32_t a, int32_t b) { return a > b ? a : b; }
NOINLINE int32_t saturate(int64_t x) { return x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : (int32_t)x; }
NOINLINE struct interval make(int64_t low, int64_t high) { return (struct interval){saturate(low), saturate(high)}; }
NOINLINE struct interval add(struct interval a, struct interval b) { return make((int64_t)a.low + b.low, (int64_t)a.high + b.high); }
NOINLINE struct interval subtract(struct interval a, struct interval b) { return make((int64_t)a.low - b.high, (int64_t)a.high - b.low); }

NOINLINE struct interval multiply(struct interval a, struct interval b)
{
    int64_t p = (int64_t)a.low * b.low, q = (int64_t)a.low * b.high;
    int64_t r = (int64_t)a.high * b.low, s = (int64_t)a.high * b.high;
    int64_t low = p < q ? p : q, high = p < q ? q : p;
    low = r < low ? r : low;
    low = s < low ? s : low;
    high = r > high ? r : high;
    return make(low, s > high ? s : high);
}

NOINLINE struct interval absolute(struct interval a)
{
    if (a.low >= 0)
        return a;
    if (a.high <= 0)
        return make(-(int64_t)a.high, -(int64_t)a.low);
    return make(0, max(saturate(-(int64_t)a.low), a.high));
}

NOINLINE struct interval shift_right(struct interval a, unsigned n)
{
    return make(a.low / (1 << n) - (a.low % (1 << n) < 0), a.high / (1 << n) - (a.high % (1 << n) < 0));
}

NOINLINE int contains(struct interval a, int32_t x) { return a.low <= x && x <= a.high; }
NOINLINE int overlap(struct interval a, struct interval b) { return a.low <= b.high && b.low <= a.high; }
NOINLINE struct interval hull(struct interval a, struct interval b) { return make(min(a.low, b.low), max(a.high, b.high)); }
NOINLINE uint32_t width(struct interval a) { return (uint32_t)a.high - (uint32_t)a.low; }

NOINLINE int merge(struct interval *v, int n)
{
    int used = 0;
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && v[j].low < v[j - 1].low; j--) {
            struct interval t = v[j];
            v[j] = v[j - 1];
            v[j - 1] = t;
        }
    for (int i = 1; i < n; i++) {
        if (overlap(v[used], v[i]))
            v[used] = hull(v[used], v[i]);
        else
            v[++used] = v[i];
    }
    return used + 1;
}

NOINLINE uint32_t next(uint32_t *state) { return *state = *state * 1664525u + 1013904223u; }

int main(void)
{
    struct interval v[30];
    uint32_t state = 5, sum = 0, escapes = 0;

    for (int i = 0; i < 2000; i++) {
        int32_t x = (int32_t)(next(&state) >> 16) - 32768, y = (int32_t)(next(&state) >> 20) - 2048;
        struct interval a = make(x - (int32_t)(state & 255), x + (int32_t)(state >> 8 & 255));
        struct interval b = make(y - (int32_t)(state >> 4 & 63), y + (int32_t)(state >> 9 & 63));
        escapes += !contains(add(a, b), x + y) + !contains(subtract(a, b), x - y);
        escapes += !contains(multiply(a, b), x * y) + !contains(absolute(a), x < 0 ? -x : x);
        sum = sum * 17 + width(multiply(a, b)) + width(absolute(subtract(b, a))) + (uint32_t)shift_right(a, 3).low;
    }
    printf("escapes %u sum %08x\n", escapes, sum);
    for (int i = 0; i < 30; i++) {
        int32_t low = (int32_t)(next(&state) >> 22);
        v[i] = make(low, low + (int32_t)(state >> 10 & 31));
    }
    int n = merge(v, 30);
    for (int i = 0; i < n; i++)
        printf("[%d,%d]%c", v[i].low, v[i].high, i == n - 1 ? '\n' : ' ');
    struct interval big = multiply(make(INT32_MIN, 5), make(-3, 100000));
    printf("saturated [%d,%d]\n", big.low, big.high);
    return 0;
}
