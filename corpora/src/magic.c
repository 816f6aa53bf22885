/* Quotients and remainders by constants, signed and unsigned, of every width, and tests of divisibility. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE uint16_t fifth16(uint16_t x) { return x / 5; }
NOINLINE uint32_t third(uint32_t x) { return x / 3; }
NOINLINE uint32_t seventh(uint32_t x) { return x / 7; }
NOINLINE uint32_t tenth(uint32_t x) { return x / 10; }
NOINLINE uint64_t third64(uint64_t x) { return x / 3; }
NOINLINE uint64_t seventh64(uint64_t x) { return x / 7; }
NOINLINE uint64_t hundredth64(uint64_t x) { return x / 100; }
NOINLINE int16_t signed_tenth16(int16_t x) { return x / 10; }
NOINLINE int32_t signed_third(int32_t x) { return x / 3; }
NOINLINE int32_t signed_fifth(int32_t x) { return x / 5; }
NOINLINE int32_t signed_seventh(int32_t x) { return x / 7; }
NOINLINE int32_t minus_tenth(int32_t x) { return x / -10; }
NOINLINE int64_t signed_641(int64_t x) { return x / 641; }
NOINLINE int64_t sixteenth(int64_t x) { return x / 16; }
NOINLINE int32_t minus_half(int32_t x) { return x / -2; }
NOINLINE uint8_t modulo10(uint8_t x) { return x % 10; }
NOINLINE uint16_t modulo7(uint16_t x) { return x % 7; }
NOINLINE uint32_t modulo60(uint32_t x) { return x % 60; }
NOINLINE int32_t signed_modulo7(int32_t x) { return x % 7; }
NOINLINE int32_t signed_modulo8(int32_t x) { return x % 8; }
NOINLINE int64_t signed_modulo100(int64_t x) { return x % 100; }
NOINLINE int is_multiple10(uint32_t x) { return x % 10 == 0; }
NOINLINE int is_multiple12(int32_t x) { return x % 12 == 0; }
NOINLINE int is_multiple641(uint64_t x) { return x % 641 == 0; }
NOINLINE int is_odd(int32_t x) { return x % 2 != 0; }
NOINLINE int32_t floor_third(int32_t x) { return (x - (x < 0 ? 2 : 0)) / 3; }
NOINLINE int32_t floor_modulo(int32_t x) { return (x % 24 + 24) % 24; }
NOINLINE int32_t ceiling_quarter(int32_t x) { return (x >> 2) + ((x & 3) != 0); }
NOINLINE uint32_t by_product(uint16_t x) { return x * 52429u >> 19; }
NOINLINE uint32_t by_series(uint32_t x)
{
    uint32_t q = (x >> 2) + (x >> 4);
    q += q >> 4;
    q += q >> 8;
    q += q >> 16;
    return q + ((x - q * 3) * 11 >> 5);
}
NOINLINE uint32_t exact_third(uint32_t x) { return x * 0xaaaaaaabu; }
NOINLINE uint32_t inverse(uint32_t x)
{
    uint32_t y = x * 3 ^ 2;
    y *= 2 - x * y;
    y *= 2 - x * y;
    return y * (2 - x * y);
}
NOINLINE uint32_t digit_sum(uint32_t x) { return x % 10 + x / 10 % 10 + x / 100 % 10; }

static uint64_t digest;

NOINLINE void mix(int64_t value) { digest = (digest ^ (uint64_t)value) * 0x100000001b3u + 1; }

int main(void)
{
    uint64_t seed = 3;
    unsigned wrong = 0;
    for (unsigned i = 0; i < 1500; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t y = (seed ^ seed >> 31) >> (i & 31);
        int64_t z = (int64_t)(y - (1ull << 40));
        uint32_t x = (uint32_t)y;
        int32_t s = (int32_t)x;
        wrong += by_series(x) != third(x) || by_product((uint16_t)x) != tenth(x & 0xffff);
        wrong += exact_third(third(x) * 3) != third(x) || inverse(x | 1) * (x | 1) != 1;
        wrong += (signed_modulo7(s) + signed_seventh(s) * 7 != s) + (third64(y) * 3 + y % 3 != y);
        mix(fifth16((uint16_t)x) * 256 + (int64_t)seventh(x) + (int64_t)seventh64(y));
        mix((int64_t)hundredth64(y) ^ signed_tenth16((int16_t)x) ^ signed_third(s));
        mix((int64_t)signed_fifth(s) - minus_tenth(s) + signed_641(z) + sixteenth(z));
        mix((int64_t)minus_half(s) + modulo10((uint8_t)x) + modulo7((uint16_t)x) + modulo60(x));
        mix(signed_modulo8(s) + signed_modulo100(z) * 64);
        mix(is_multiple10(x) + 2 * is_multiple12(s) + 4 * is_multiple641(y) + 8 * is_odd(s) + floor_modulo(s) * 16);
        mix(floor_third(s / 2) ^ ceiling_quarter(s) ^ digit_sum(x));
    }
    printf("wrong %u digest %016llx\n", wrong, (unsigned long long)digest);
    return 0;
}
