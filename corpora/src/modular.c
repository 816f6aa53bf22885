/* Modular arithmetic: powers, inverses, deterministic Miller-Rabin, Pollard's rho. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

NOINLINE uint32_t add_mod(uint32_t a, uint32_t b, uint32_t m) { return a >= m - b ? a - (m - b) : a + b; }
NOINLINE uint32_t multiply_mod(uint32_t a, uint32_t b, uint32_t m) { return (uint32_t)((uint64_t)a * b % m); }

NOINLINE uint32_t power_mod(uint32_t base, uint32_t exponent, uint32_t m)
{
    uint32_t result = 1 % m;
    for (base %= m; exponent != 0; exponent >>= 1) {
        if (exponent & 1)
            result = multiply_mod(result, base, m);
        base = multiply_mod(base, base, m);
    }
    return result;
}

NOINLINE int32_t inverse_mod(int32_t a, int32_t m)
{
    int32_t r = m, next_r = a, t = 0, next_t = 1;
    while (next_r != 0) {
        int32_t quotient = r / next_r, swap = r - quotient * next_r;
        r = next_r;
        next_r = swap;
        swap = t - quotient * next_t;
        t = next_t;
        next_t = swap;
    }
    return t < 0 ? t + m : t;
}

NOINLINE int witness(uint32_t a, uint32_t n)
{
    uint32_t odd = n - 1;
    int twos = 0;
    while ((odd & 1) == 0) {
        odd >>= 1;
        twos++;
    }
    uint32_t x = power_mod(a, odd, n);
    if (x == 1 || x == n - 1)
        return 0;
    while (--twos > 0) {
        x = multiply_mod(x, x, n);
        if (x == n - 1)
            return 0;
    }
    return 1;
}

NOINLINE int is_prime(uint32_t n)
{
    static const uint32_t bases[] = {2, 3, 5, 7, 11};
    if (n < 2)
        return 0;
    for (int i = 0; i < 5; i++) {
        if (n % bases[i] == 0)
            return n == bases[i];
        if (witness(bases[i], n))
            return 0;
    }
    return 1;
}

NOINLINE uint32_t rho(uint32_t n)
{
    for (uint32_t c = 1;; c++) {
        uint32_t slow = 2, fast = 2, divisor = 1;
        while (divisor == 1) {
            slow = add_mod(multiply_mod(slow, slow, n), c, n);
            fast = add_mod(multiply_mod(fast, fast, n), c, n);
            fast = add_mod(multiply_mod(fast, fast, n), c, n);
            divisor = (uint32_t)gcd(slow > fast ? slow - fast : fast - slow, n);
        }
        if (divisor != n)
            return divisor;
    }
}

int main(void)
{
    static const uint32_t composites[] = {4294967291u - 2, 8051, 10403, 1000036000u + 99, 3215031751u};
    unsigned primes = 0;
    uint64_t inverses = 0;

    for (uint32_t n = 0; n < 5000; n++)
        primes += (unsigned)is_prime(n);
    for (int32_t a = 1; a < 1000; a++)
        inverses += (uint64_t)inverse_mod(a, 1000003) * (uint64_t)a % 1000003;
    printf("primes %u inverses %llu\n", primes, (unsigned long long)inverses);
    printf("power %u %u\n", power_mod(3, 1000000006u, 1000000007u), power_mod(123456789u, 987654321u, 4294967291u));
    for (int i = 0; i < 5; i++) {
        uint32_t n = composites[i];
        printf("%u prime %d", n, is_prime(n));
        if (!is_prime(n) && n & 1)
            printf(" factor %u", rho(n));
        printf("\n");
    }
    return 0;
}
