/* Bitsets and prime sieves: Eratosthenes on odd numbers, totients, prime gaps. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))
#define LIMIT 20000u

static uint64_t composite[LIMIT / 128 + 1];
static uint16_t totient[2001];

NOINLINE void set_bit(uint64_t *set, uint32_t i) { set[i >> 6] |= 1ull << (i & 63); }
NOINLINE int test_bit(const uint64_t *set, uint32_t i) { return (int)(set[i >> 6] >> (i & 63) & 1); }

NOINLINE int is_prime(uint32_t n)
{
    if ((n & 1) == 0)
        return n == 2;
    return n > 1 && !test_bit(composite, n >> 1);
}

NOINLINE void sieve(void)
{
    for (uint32_t p = 3; p * p < LIMIT; p += 2)
        if (is_prime(p))
            for (uint32_t m = p * p; m < LIMIT; m += 2 * p)
                set_bit(composite, m >> 1);
}

NOINLINE void totients(uint32_t n)
{
    for (uint32_t i = 0; i <= n; i++)
        totient[i] = (uint16_t)i;
    for (uint32_t p = 2; p <= n; p++)
        if (totient[p] == p)
            for (uint32_t m = p; m <= n; m += p)
                totient[m] = (uint16_t)(totient[m] - totient[m] / p);
}

NOINLINE uint32_t next_prime(uint32_t n)
{
    do
        n++;
    while (!is_prime(n));
    return n;
}

NOINLINE int mobius(uint32_t n)
{
    int sign = 1;
    for (uint32_t p = 2; p * p <= n; p++) {
        if (n % p != 0)
            continue;
        n /= p;
        if (n % p == 0)
            return 0;
        sign = -sign;
    }
    return n > 1 ? -sign : sign;
}

NOINLINE uint32_t digit_sum(uint32_t n)
{
    uint32_t sum = 0;
    for (; n != 0; n /= 10)
        sum += n % 10;
    return sum;
}

int main(void)
{
    uint32_t count = 0, twins = 0, widest = 0, at = 0, digits = 0, last = 2;
    int mertens = 0;
    uint64_t phi = 0;

    sieve();
    for (uint32_t p = 2; p < LIMIT - 40; p = next_prime(p)) {
        uint32_t gap = p - last;
        count++;
        twins += gap == 2;
        digits += digit_sum(p);
        if (gap > widest) {
            widest = gap;
            at = last;
        }
        last = p;
    }
    totients(2000);
    for (uint32_t n = 1; n <= 2000; n++) {
        phi += totient[n];
        mertens += mobius(n);
    }
    printf("count %u twins %u widest %u after %u last %u\n", count, twins, widest, at, last);
    printf("digits %u phi %llu mertens %d\n", digits, (unsigned long long)phi, mertens);
    return 0;
}
