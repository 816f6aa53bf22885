/* Division and multiplication by constants, of every width and sign, against long division. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE uint32_t third(uint32_t x) { return x / 3; }
NOINLINE uint32_t fifth(uint32_t x) { return x / 5; }
NOINLINE uint32_t seventh(uint32_t x) { return x / 7; }
NOINLINE uint32_t modulo_ten(uint32_t x) { return x % 10; }
NOINLINE uint32_t modulo_sixty(uint32_t x) { return x % 60; }
NOINLINE int32_t signed_eighth(int32_t x) { return x / 8; }
NOINLINE int32_t signed_modulo_eight(int32_t x) { return x % 8; }
NOINLINE int32_t signed_hundredth(int32_t x) { return x / 100; }
NOINLINE int32_t signed_modulo_seven(int32_t x) { return x % 7; }
NOINLINE int32_t negative_ninth(int32_t x) { return x / -9; }
NOINLINE uint64_t wide_tenth(uint64_t x) { return x / 10; }
NOINLINE int64_t wide_signed_thousandth(int64_t x) { return x / 1000; }
NOINLINE uint16_t short_eleventh(uint16_t x) { return x / 11; }
NOINLINE int16_t short_signed_sixth(int16_t x) { return (int16_t)(x / 6); }
NOINLINE uint8_t byte_thirteenth(uint8_t x) { return x / 13; }
NOINLINE int8_t byte_signed_quarter(int8_t x) { return (int8_t)(x / 4); }
NOINLINE uint32_t times_nine(uint32_t x) { return x * 9; }
NOINLINE uint32_t times_ten(uint32_t x) { return x * 10; }
NOINLINE uint32_t times_31(uint32_t x) { return x * 31; }
NOINLINE uint64_t times_100(uint64_t x) { return x * 100; }
NOINLINE int is_multiple_of_three(uint32_t x) { return x % 3 == 0; }
NOINLINE int is_odd(int32_t x) { return x % 2 != 0; }

NOINLINE uint32_t long_division(uint32_t a, uint32_t b, uint32_t *rest)
{
    uint32_t quotient = 0;
    uint64_t remainder = 0;
    for (int bit = 31; bit >= 0; bit--) {
        remainder = remainder << 1 | (a >> bit & 1);
        quotient <<= 1;
        if (remainder >= b) {
            remainder -= b;
            quotient |= 1;
        }
    }
    *rest = (uint32_t)remainder;
    return quotient;
}

NOINLINE uint32_t reciprocal_third(uint32_t x) { return (uint32_t)((uint64_t)x * 0xaaaaaaabu >> 33); }
NOINLINE uint32_t shift_add_ten(uint32_t x) { return (x << 3) + (x << 1); }

int main(void)
{
    uint32_t x = 88172645u, wrong = 0, sum = 0, rest;
    uint64_t wide = 0;

    for (int i = 0; i < 4000; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        uint32_t u = x >> (i % 24);
        int32_t s = (int32_t)u;
        wrong += long_division(u, 3, &rest) != third(u) || is_multiple_of_three(u) != (rest == 0);
        wrong += long_division(u, 5, &rest) != fifth(u) || long_division(u, 7, &rest) != seventh(u);
        wrong += reciprocal_third(u) != third(u) || shift_add_ten(u) != times_ten(u);
        long_division(u, 10, &rest);
        wrong += rest != modulo_ten(u);
        wrong += signed_eighth(s) * 8 + signed_modulo_eight(s) != s;
        sum = sum * 3 + modulo_sixty(u) + times_nine(u) + times_31(u);
        sum += (uint32_t)(signed_hundredth(s) ^ signed_modulo_seven(s) ^ negative_ninth(s)) + (uint32_t)is_odd(s);
        sum += short_eleventh((uint16_t)u) + (uint32_t)short_signed_sixth((int16_t)u);
        sum ^= byte_thirteenth((uint8_t)u) + (uint32_t)byte_signed_quarter((int8_t)u);
        wide = wide * 7 + wide_tenth(wide ^ u) + (uint64_t)wide_signed_thousandth((int64_t)(wide - u)) + times_100(u);
    }
    printf("wrong %u sum %08x wide %016llx\n", wrong, sum, (unsigned long long)wide);
    return 0;
}
