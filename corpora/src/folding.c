/* Check digits and folded sums: ISBN, EAN, IBAN, VIN-like weights, Internet, Fletcher, Adler, CRC steps. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE uint16_t fold16(uint32_t sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)(sum + (sum >> 16));
}
NOINLINE uint16_t ones_add(uint16_t a, uint16_t b) { return (uint16_t)(a + b + ((uint32_t)a + b > 0xffff)); }
NOINLINE uint16_t ones_negate(uint16_t a) { return (uint16_t)~a; }
NOINLINE uint16_t replace_word(uint16_t sum, uint16_t old, uint16_t new)
{
    uint32_t total = (uint32_t)(uint16_t)~sum + (uint16_t)~old + new;
    total = (total & 0xffff) + (total >> 16);
    return (uint16_t)~(total + (total >> 16));
}
NOINLINE uint8_t fold8(uint32_t x) { return (uint8_t)(x ^ x >> 8 ^ x >> 16 ^ x >> 24); }
NOINLINE uint32_t fold_mersenne(uint64_t x) { return (uint32_t)((x & 0x7fffffff) + (x >> 31)); }
NOINLINE uint32_t modulo255(uint32_t x)
{
    x = (x & 0xff00ff) + (x >> 8 & 0xff00ff);
    x = (x & 0xffff) + (x >> 16);
    x = (x & 255) + (x >> 8);
    return x >= 255 ? x - 255 : x;
}
NOINLINE uint8_t modulo15(uint8_t x)
{
    x = (uint8_t)((x >> 4) + (x & 15));
    return x >= 15 ? (x == 30 ? 0 : x - 15) : x;
}
NOINLINE uint8_t longitudinal(uint8_t sum, uint8_t byte) { return (uint8_t)(sum - byte); }
NOINLINE uint16_t rotate_add(uint16_t sum, uint8_t byte) { return (uint16_t)((sum >> 1 | sum << 15) + byte); }
NOINLINE uint32_t fletcher(uint32_t state, uint8_t byte)
{
    uint32_t low = ((state & 0xffff) + byte) % 255;
    return ((state >> 16) + low) % 255 << 16 | low;
}
NOINLINE uint32_t adler(uint32_t state, uint8_t byte)
{
    uint32_t low = (state & 0xffff) + byte;
    low -= low >= 65521 ? 65521 : 0;
    uint32_t high = (state >> 16) + low;
    return (high >= 65521 ? high - 65521 : high) << 16 | low;
}
NOINLINE uint8_t crc8_bit(uint8_t crc) { return (uint8_t)(crc << 1 ^ (crc & 0x80 ? 0x07 : 0)); }
NOINLINE uint16_t ccitt_bit(uint16_t crc) { return (uint16_t)(crc << 1 ^ (crc >> 15) * 0x1021); }
NOINLINE uint16_t modbus_bit(uint16_t crc) { return crc & 1 ? crc >> 1 ^ 0xa001 : crc >> 1; }
NOINLINE uint32_t crc32_bit(uint32_t crc) { return crc >> 1 ^ (0xedb88320u & (uint32_t)-(crc & 1)); }
NOINLINE uint64_t crc64_bit(uint64_t crc) { return crc >> 1 ^ (0xc96c5795d7870f42u & (uint64_t)-(int64_t)(crc & 1)); }
NOINLINE uint32_t crc24_bit(uint32_t crc) { return (crc << 1 ^ (crc & 0x800000 ? 0x864cfb : 0)) & 0xffffff; }
NOINLINE uint16_t ccitt_byte(uint16_t crc, uint8_t byte)
{
    uint8_t x = (uint8_t)(crc >> 8 ^ byte);
    x ^= x >> 4;
    return (uint16_t)(crc << 8 ^ x << 12 ^ x << 5 ^ x);
}

NOINLINE unsigned ean_term(unsigned digit, unsigned place) { return place & 1 ? digit * 3 : digit; }
NOINLINE unsigned ean_check(unsigned sum) { return (10 - sum % 10) % 10; }
NOINLINE unsigned ean(uint64_t number)
{
    unsigned sum = 0;
    for (unsigned place = 1; number != 0; place++, number /= 10)
        sum += ean_term((unsigned)(number % 10), place);
    return ean_check(sum);
}
NOINLINE unsigned isbn(uint32_t number)
{
    unsigned sum = 0;
    for (unsigned weight = 2; weight <= 10; weight++, number /= 10)
        sum += number % 10 * weight;
    return (11 - sum % 11) % 11;
}
NOINLINE uint32_t step97(uint32_t rest, uint32_t digit) { return (rest * 10 + digit) % 97; }
NOINLINE uint32_t letter97(uint32_t rest, char letter) { return (rest * 100 + (uint32_t)(letter - 'A') + 10) % 97; }
NOINLINE uint32_t iban_check(uint32_t rest) { return 98 - rest * 100 % 97; }
NOINLINE unsigned luhn_twice(unsigned digit) { return digit * 2 - (digit > 4 ? 9 : 0); }
NOINLINE unsigned hybrid_step(unsigned p, unsigned digit)
{
    unsigned sum = (p + digit) % 10;
    return (sum == 0 ? 10 : sum) * 2 % 11;
}

static uint64_t digest;

NOINLINE void mix(uint64_t value) { digest = (digest ^ value) * 0x100000001b3u + 1; }

int main(void)
{
    uint32_t x = 1, f = 0, a = 1, r = 0, c = ~0u, c24 = 0xb704ce;
    uint16_t w = 0xffff, m = 0xffff, k = 0xffff;
    uint64_t y = 1, long_crc = ~0ull;
    unsigned p = 10, wrong = 0;
    for (int i = 0; i < 1500; i++) {
        x = x * 69069u + 1;
        y = y * 6364136223846793005u + x;
        uint8_t b = (uint8_t)(x >> 20);
        f = fletcher(f, b), a = adler(a, b), p = hybrid_step(p, b % 10), r = step97(r, b % 10);
        w = ones_add(w, (uint16_t)x), m = modbus_bit(m ^ b), k = ccitt_byte(k, b);
        c = crc32_bit(c ^ b), c24 = crc24_bit(c24 ^ b), long_crc = crc64_bit(long_crc ^ b);
        wrong += modulo255(x) != x % 255 || modulo15(b) != b % 15u || fold16(x) % 65535 != x % 65535;
        mix(ones_negate(w) + replace_word(w, (uint16_t)x, b) + fold8(x) + fold_mersenne(y));
        mix(longitudinal(b, (uint8_t)w) ^ rotate_add(w, b) ^ crc8_bit(b));
        mix(ccitt_bit(m) + letter97(r, (char)('A' + b % 26)) + luhn_twice(b % 10));
        mix((uint64_t)a << 32 ^ f);
    }
    printf("%04x %04x %04x %08x %06x %016llx\n", w, m, k, c, c24, (unsigned long long)long_crc);
    printf("ean %u isbn %u iban %u ", ean(400638133393), isbn(30640615), iban_check(r));
    printf("wrong %u digest %016llx\n", wrong, (unsigned long long)digest);
    return 0;
}
