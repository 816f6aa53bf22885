/* Small state machines and encodings without tables: UTF-8 and UTF-16 units, Morse, Soundex, counters. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE int length8(uint32_t c) { return 1 + (c > 0x7f) + (c > 0x7ff) + (c > 0xffff); }
NOINLINE int length_of_lead(uint8_t b)
{
    return b < 0x80 ? 1 : b < 0xc2 ? 0 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : b < 0xf5 ? 4 : 0;
}
NOINLINE uint32_t pack2(uint32_t c) { return 0xc080 | (c & 0x7c0) << 2 | (c & 0x3f); }
NOINLINE uint32_t pack3(uint32_t c) { return 0xe08080 | (c & 0xf000) << 4 | (c & 0xfc0) << 2 | (c & 0x3f); }
NOINLINE uint32_t pack4(uint32_t c)
{
    return 0xf0808080u | (c & 0x1c0000) << 6 | (c & 0x3f000) << 4 | (c & 0xfc0) << 2 | (c & 0x3f);
}
NOINLINE uint32_t unpack2(uint8_t a, uint8_t b) { return (uint32_t)(a & 31) << 6 | (b & 63); }
NOINLINE uint32_t unpack4(uint32_t x)
{
    return (x & 0x7000000) >> 6 | (x & 0x3f0000) >> 4 | (x & 0x3f00) >> 2 | (x & 0x3f);
}
NOINLINE int is_surrogate(uint32_t c) { return (c & 0xfffff800u) == 0xd800; }
NOINLINE int is_high(uint16_t u) { return (u & 0xfc00) == 0xd800; }
NOINLINE int is_low(uint16_t u) { return (uint16_t)(u - 0xdc00) < 0x400; }
NOINLINE uint16_t high_unit(uint32_t c) { return (uint16_t)(0xd7c0 + (c >> 10)); }
NOINLINE uint16_t low_unit(uint32_t c) { return (uint16_t)(0xdc00 | (c & 0x3ff)); }
NOINLINE uint32_t join_units(uint16_t h, uint16_t l) { return ((uint32_t)h << 10) + l - 0x35fdc00; }
NOINLINE int is_scalar(uint32_t c) { return c < 0xd800 || c - 0xe000 < 0x102000; }

NOINLINE uint8_t to_lower(uint8_t c) { return (uint8_t)(c | ((uint8_t)(c - 'A') < 26) << 5); }
NOINLINE uint8_t to_upper(uint8_t c) { return (uint8_t)(c - ((uint8_t)(c - 'a') < 26 ? 32 : 0)); }
NOINLINE unsigned morse_digit(unsigned d) { return 32 | (d <= 5 ? 31u >> d : 31u << (10 - d) & 31); }
NOINLINE unsigned soundex(unsigned c)
{
    unsigned bit = 1u << (c & 31);
    return !!(bit & 0x410044) + 2u * !!(bit & 0x50a0c88) + 3u * !!(bit & 0x100010) + 4u * !!(bit & 0x1000)
           + 5u * !!(bit & 0x6000) + 6u * !!(bit & 0x40000);
}

NOINLINE unsigned modulo3_step(unsigned state, unsigned bit) { return (state * 2 + bit) % 3; }
NOINLINE unsigned lamp(unsigned state, int pressed) { return pressed ? (state + 1) & 3 : state; }
NOINLINE unsigned debounce(unsigned history, unsigned level) { return (history << 1 | (level & 1)) & 0xff; }
NOINLINE int settled(unsigned history) { return history == 0xff ? 1 : history == 0 ? 0 : -1; }
NOINLINE unsigned turnstile(unsigned open, unsigned coin, unsigned push) { return (open | coin) & ~(open & push) & 1; }
NOINLINE unsigned saturating_predictor(unsigned s, int taken) { return taken ? s + (s < 3) : s - (s > 0); }
NOINLINE int quadrature(unsigned before, unsigned after) { return (int)(((before >> 1 ^ after) & 1) << 1) - 1; }
NOINLINE unsigned johnson(unsigned x) { return (x << 1 | (~x >> 3 & 1)) & 15; }
NOINLINE unsigned traffic(unsigned s) { return s == 0 ? 1 : s == 1 ? 3 : s == 3 ? 2 : 0; }
NOINLINE int vending(int credit, int coin) { return credit + coin >= 45 ? credit + coin - 45 : credit + coin; }
NOINLINE unsigned collatz(unsigned x) { return x & 1 ? 3 * x + 1 : x / 2; }

static uint64_t digest;

NOINLINE void mix(uint64_t value) { digest = (digest ^ value) * 0x100000001b3u + 1; }

NOINLINE int hex_digit(char c) {
    return c <= '9' ? c - '0' : (c | 32) - 'a' + 10;
}

int main(void)
{
    unsigned three = 0, light = 0, history = 0, gate = 0, guess = 0, ring = 0, wrong = 0, lamps = 0, n = 27;
    int credit = 0;
    for (uint32_t i = 0; i < 1200; i++) {
        uint32_t c = i * 929, astral = 0x10000 + c % 0x100000, bit = (i * i >> 3) & 1;
        uint8_t b = (uint8_t)(c >> 3);
        wrong += join_units(high_unit(astral), low_unit(astral)) != astral || unpack4(pack4(astral)) != astral;
        wrong += is_scalar(c) == (is_surrogate(c) || c > 0x10ffff) || (three = modulo3_step(0, bit)) != bit;
        light = traffic(light), lamps = lamp(lamps, b & 4), history = debounce(history, bit || (i & 32) != 0);
        gate = turnstile(gate, bit, b & 1), guess = saturating_predictor(guess, b & 8), ring = johnson(ring);
        credit = vending(credit, (int)(5 + 5 * bit)), n = collatz(n);
        mix(pack2(c & 0x7ff) + pack3(c & 0xffff) + unpack2(b, (uint8_t)i) + (uint32_t)length8(c));
        mix((uint32_t)(2 * length_of_lead(b) + 16 * is_high((uint16_t)c) + 32 * is_low((uint16_t)c)));
        mix(to_lower(b) + to_upper(b) * 4u + light);
        mix((uint32_t)(hex_digit((char)('0' + b % 10))));
        mix(soundex(b) + morse_digit(b % 10) * 8 + (uint32_t)settled(history) + (uint32_t)quadrature(b & 3, i & 3));
        mix(lamps + gate * 4 + guess * 8 + ring * 32 + (uint32_t)credit + n);
    }
    printf("soundex %u%u%u%u ", soundex('R'), soundex('B'), soundex('T'), soundex('L'));
    printf("wrong %u digest %016llx\n", wrong, (unsigned long long)digest);
    return 0;
}
