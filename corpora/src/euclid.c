/* Greatest common divisors: Euclid, binary, extended; fractions and continued fractions. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

struct fraction {
    int32_t top, bottom;
};

NOINLINE uint32_t euclid(uint32_t a, uint32_t b)
{
    while (b != 0) {
        uint32_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

NOINLINE uint32_t binary_gcd(uint32_t a, uint32_t b)
{
    int twos = 0;
    if (a == 0 || b == 0)
        return a | b;
    for (; ((a | b) & 1) == 0; twos++) {
        a >>= 1;
        b >>= 1;
    }
    while ((a & 1) == 0)
        a >>= 1;
    while (b != 0) {
        while ((b & 1) == 0)
            b >>= 1;
        if (a > b) {
            uint32_t t = a;
            a = b;
            b = t;
        }
        b -= a;
    }
    return a << twos;
}

NOINLINE int32_t extended(int32_t a, int32_t b, int32_t *x, int32_t *y)
{
    if (b == 0) {
        *x = 1;
        *y = 0;
        return a;
    }
    int32_t g = extended(b, a % b, y, x);
    *y -= a / b * *x;
    return g;
}

NOINLINE uint64_t lcm(uint32_t a, uint32_t b) { return (uint64_t)(a / euclid(a, b)) * b; }
NOINLINE uint32_t magnitude(int32_t x) { return x < 0 ? 0u - (uint32_t)x : (uint32_t)x; }

NOINLINE struct fraction reduce(int32_t top, int32_t bottom)
{
    int32_t g = (int32_t)euclid(magnitude(top), magnitude(bottom));
    struct fraction f = {top / g, bottom / g};
    if (f.bottom < 0) {
        f.top = -f.top;
        f.bottom = -f.bottom;
    }
    return f;
}

NOINLINE struct fraction add(struct fraction a, struct fraction b)
{
    return reduce(a.top * b.bottom + b.top * a.bottom, a.bottom * b.bottom);
}

NOINLINE int compare(struct fraction a, struct fraction b)
{
    int64_t left = (int64_t)a.top * b.bottom, right = (int64_t)b.top * a.bottom;
    return (left > right) - (left < right);
}

NOINLINE void continued(int32_t top, int32_t bottom)
{
    printf("%d/%d =", top, bottom);
    while (bottom != 0) {
        int32_t whole = top / bottom, rest = top % bottom;
        if (rest < 0) {
            whole--;
            rest += bottom;
        }
        printf(" %d", whole);
        top = bottom;
        bottom = rest;
    }
    printf("\n");
}

int main(void)
{
    uint32_t disagree = 0, sum = 0, x = 12345;
    int32_t s, t, wrong = 0;
    struct fraction total = {0, 1};

    for (int i = 0; i < 2000; i++) {
        x = x * 1103515245u + 12345u;
        uint32_t a = x >> 12, b = (x & 0xfff) * 6;
        uint32_t g = euclid(a, b);
        disagree += g != binary_gcd(a, b);
        wrong += extended((int32_t)a, (int32_t)b, &s, &t) != (int32_t)g;
        wrong += (uint32_t)s * a + (uint32_t)t * b != g;
        sum = sum * 7 + g + (uint32_t)lcm(a + 1, b + 1);
    }
    printf("disagree %u wrong %d sum %08x\n", disagree, wrong, sum);
    for (int32_t n = 1; n <= 12; n++)
        total = add(total, reduce(n & 1 ? 6 : -6, 2 * n));
    printf("total %d/%d compare %d %d\n", total.top, total.bottom, compare(total, reduce(2, 1)), compare(total, total));
    continued(355, 113);
    continued(-649, 200);
    continued(1134903170, 701408733);
    return 0;
}
