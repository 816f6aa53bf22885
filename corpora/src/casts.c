/* Conversions between widths and signs, sign extension by hand, and truth values as masks. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE int64_t extend8(uint64_t x) { return (int64_t)(((x & 0xff) ^ 0x80) - 0x80); }
NOINLINE int32_t extend12(uint32_t x) { return (int32_t)(((x & 0xfff) ^ 0x800) - 0x800); }
NOINLINE int32_t extend5(uint32_t x) { return (int32_t)(x << 27) >> 27; }
NOINLINE int32_t extend(uint32_t x, unsigned bits) { return (int32_t)(x << (32 - bits)) >> (32 - bits); }
NOINLINE int64_t extend48(uint64_t x) { return (int64_t)(x << 16) >> 16; }
NOINLINE int64_t add_low_byte(int64_t a, int64_t b) { return (int8_t)a + (int64_t)(int8_t)b; }
NOINLINE int32_t byte_plus_word(int8_t a, uint16_t b) { return a + b; }
NOINLINE int64_t word_times_int(int16_t a, int32_t b) { return (int64_t)a * b; }
NOINLINE uint64_t unsigned_times(uint16_t a, uint32_t b) { return (uint64_t)a * b; }
NOINLINE uint32_t high_half(uint64_t x) { return (uint32_t)(x >> 32); }
NOINLINE int32_t signed_high_half(int64_t x) { return (int32_t)(x >> 32); }
NOINLINE int8_t third_byte(uint64_t x) { return (int8_t)(x >> 16); }
NOINLINE int16_t middle_word(uint64_t x) { return (int16_t)(x >> 24); }
NOINLINE uint64_t replace_low_byte(uint64_t x, uint8_t b) { return (x & ~0xffull) | b; }
NOINLINE uint32_t replace_high_word(uint32_t x, uint16_t w) { return (x & 0xffff) | (uint32_t)w << 16; }
NOINLINE int fits8(int64_t x) { return x == (int8_t)x; }
NOINLINE int fits16(int32_t x) { return (uint32_t)x + 0x8000u < 0x10000u; }
NOINLINE int fits32(int64_t x) { return x == (int32_t)x; }
NOINLINE int fits_unsigned32(uint64_t x) { return x >> 32 == 0; }
NOINLINE int fits_unsigned(int64_t x, unsigned bits) { return (uint64_t)x >> bits == 0; }
NOINLINE uint64_t mask_if(int truth) { return (uint64_t)-(int64_t)(truth != 0); }
NOINLINE uint32_t mask_unless(uint32_t x) { return (uint32_t)-(x == 0); }
NOINLINE uint8_t mask8(uint8_t a, uint8_t b) { return (uint8_t)-(a < b); }
NOINLINE int16_t mask16(int16_t a, int16_t b) { return (int16_t)-(a >= b); }
NOINLINE uint64_t all_or_none(uint64_t x, uint8_t flag) { return flag & 1 ? x : 0; }
NOINLINE int32_t sign_mask(int32_t x) { return x >> 31; }
NOINLINE uint32_t sign_bit(int32_t x) { return (uint32_t)x >> 31; }
NOINLINE int mixed_less(int32_t a, uint32_t b) { return a < 0 || (uint32_t)a < b; }
NOINLINE int mixed_equal(int64_t a, uint64_t b) { return a >= 0 && (uint64_t)a == b; }
NOINLINE int promoted_less(int8_t a, uint8_t b) { return a < b; }
NOINLINE uint64_t doubled_byte(uint8_t b) { return (uint64_t)b << 8 | b; }
NOINLINE uint64_t every_byte(uint8_t b) { return b * 0x0101010101010101ull; }
NOINLINE int32_t divide_low(int64_t a, int16_t b) { return (int32_t)a / (b | 1); }
NOINLINE int64_t sum_of_widths(int8_t a, int16_t b, int32_t c, int64_t d)
{
    return (int64_t)((uint64_t)d + (uint64_t)(int64_t)c) ^ (a - b);
}
NOINLINE uint64_t sum_unsigned(uint8_t a, uint16_t b, uint32_t c, uint64_t d) { return d - c + b - a; }
NOINLINE uint32_t round_trip(uint32_t x)
{
    return (uint32_t)(uint8_t)(x + 1) + (uint16_t)(x - 1) + (uint32_t)(int8_t)x;
}

static uint64_t seed = 11, digest;

NOINLINE void mix(int64_t value) { digest = (digest ^ (uint64_t)value) * 0x100000001b3u + 1; }

int main(void)
{
    unsigned wrong = 0;
    for (unsigned i = 0; i < 1500; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t x = (seed ^ seed >> 31) >> (i % 50), y = 0 - (seed >> 13);
        int32_t a = (int32_t)x, b = (int32_t)y;
        wrong += extend8(x) != (int8_t)x || extend12((uint32_t)x) != extend((uint32_t)x, 12);
        wrong += extend5((uint32_t)y) != extend((uint32_t)y, 5) || fits8(a) != (a >= -128 && a < 128);
        wrong += fits16(a) != (a == (int16_t)a) || fits32((int64_t)x) != (x + (1u << 31) < 1ull << 32);
        mix(extend48(x) ^ add_low_byte((int64_t)x, b) ^ byte_plus_word((int8_t)a, (uint16_t)b));
        mix(word_times_int((int16_t)a, b) ^ (int64_t)unsigned_times((uint16_t)a, (uint32_t)b));
        mix((int64_t)high_half(y) + signed_high_half((int64_t)y));
        mix(third_byte(x) * 4 + middle_word(y));
        mix((int64_t)(replace_low_byte(x, (uint8_t)b) ^ replace_high_word((uint32_t)x, (uint16_t)b)));
        mix(fits_unsigned32(x) * 8 + fits_unsigned((int64_t)x, i % 64) * 4 + mixed_less(a, (uint32_t)b) * 2);
        mix((int64_t)(mask_if(a & 4) ^ mask_unless((uint32_t)x >> 2)) + mask8((uint8_t)a, (uint8_t)b));
        mix(mask16((int16_t)a, (int16_t)b) + sign_mask(a) + (int64_t)all_or_none(y, (uint8_t)a));
        mix(sign_bit(a) * 16);
        mix(mixed_equal(a, x) * 2 + promoted_less((int8_t)a, (uint8_t)b) + (int64_t)doubled_byte((uint8_t)a));
        mix((int64_t)every_byte((uint8_t)b) ^ divide_low((int64_t)y, (int16_t)a));
        mix(sum_of_widths((int8_t)a, (int16_t)b, a, (int64_t)y) ^ round_trip((uint32_t)a));
        mix((int64_t)sum_unsigned((uint8_t)a, (uint16_t)b, (uint32_t)a, y));
    }
    printf("wrong %u digest %016llx\n", wrong, (unsigned long long)digest);
    return 0;
}
