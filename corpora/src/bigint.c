/* Big natural numbers in 32-bit limbs: factorials, Fibonacci numbers, powers. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE static __attribute__((noinline))
#define LIMBS 16

struct big {
    uint32_t limb[LIMBS];
};

NOINLINE struct big from_small(uint32_t value)
{
    struct big r = {{value}};
    return r;
}

NOINLINE uint32_t add(struct big *a, const struct big *b)
{
    uint64_t carry = 0;
    for (int i = 0; i < LIMBS; i++) {
        carry += (uint64_t)a->limb[i] + b->limb[i];
        a->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return (uint32_t)carry;
}

NOINLINE uint32_t subtract(struct big *a, const struct big *b)
{
    uint32_t borrow = 0;
    for (int i = 0; i < LIMBS; i++) {
        uint32_t x = a->limb[i], y = b->limb[i];
        uint32_t d = x - y - borrow;
        borrow = (x < y) | ((x == y) & borrow);
        a->limb[i] = d;
    }
    return borrow;
}

NOINLINE uint32_t multiply_small(struct big *a, uint32_t m)
{
    uint64_t carry = 0;
    for (int i = 0; i < LIMBS; i++) {
        carry += (uint64_t)a->limb[i] * m;
        a->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return (uint32_t)carry;
}

NOINLINE uint32_t divide_small(struct big *a, uint32_t d)
{
    uint64_t remainder = 0;
    for (int i = LIMBS - 1; i >= 0; i--) {
        remainder = remainder << 32 | a->limb[i];
        a->limb[i] = (uint32_t)(remainder / d);
        remainder %= d;
    }
    return (uint32_t)remainder;
}

NOINLINE int is_zero(const struct big *a)
{
    uint32_t any = 0;
    for (int i = 0; i < LIMBS; i++)
        any |= a->limb[i];
    return any == 0;
}

NOINLINE int compare(const struct big *a, const struct big *b)
{
    for (int i = LIMBS - 1; i >= 0; i--)
        if (a->limb[i] != b->limb[i])
            return a->limb[i] < b->limb[i] ? -1 : 1;
    return 0;
}

NOINLINE void print(const char *name, struct big a)
{
    char text[LIMBS * 10 + 1];
    int at = sizeof text - 1;
    text[at] = '\0';
    do
        text[--at] = (char)('0' + divide_small(&a, 10));
    while (!is_zero(&a));
    printf("%s %s\n", name, text + at);
}

int main(void)
{
    struct big factorial = from_small(1), a = from_small(0), b = from_small(1), power = from_small(1);

    for (uint32_t i = 2; i <= 80; i++)
        multiply_small(&factorial, i);
    for (int i = 0; i < 300; i++) {
        struct big next = a;
        add(&next, &b);
        a = b;
        b = next;
    }
    for (int i = 0; i < 150; i++)
        multiply_small(&power, 7);
    print("80!", factorial);
    print("fib300", a);
    print("7^150", power);
    printf("compare %d %d %d\n", compare(&a, &b), compare(&power, &factorial), compare(&a, &a));
    struct big difference = power;
    printf("borrow %u %u\n", subtract(&difference, &factorial), subtract(&a, &b));
    printf("mod %u\n", divide_small(&difference, 1000000007u));
    return 0;
}
