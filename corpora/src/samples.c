/* Sample formats and fixed-point products: 8, 16, 24 and 32 bits, companding, gains, mixing, rounding. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE int16_t from_unsigned8(uint8_t s) { return (int16_t)((s - 128) * 256); }
NOINLINE uint16_t offset_binary(int16_t s) { return (uint16_t)(s + 32768); }
NOINLINE int32_t from24(uint8_t low, uint8_t middle, int8_t high) { return high * 65536 + middle * 256 + low; }
NOINLINE int32_t extend24(uint32_t s) { return (int32_t)(s << 8) >> 8; }
NOINLINE uint32_t pack_stereo(int16_t l, int16_t r) { return (uint32_t)(uint16_t)l | (uint32_t)(uint16_t)r << 16; }
NOINLINE int16_t left_of(uint32_t pair) { return (int16_t)pair; }
NOINLINE int16_t right_of(uint32_t pair) { return (int16_t)(pair >> 16); }
NOINLINE int16_t clip(int32_t s) { return (int16_t)(s > 32767 ? 32767 : s < -32768 ? -32768 : s); }
NOINLINE int32_t clip24(int32_t s) { return s >= 1 << 23 ? (1 << 23) - 1 : s < -(1 << 23) ? -(1 << 23) : s; }
NOINLINE int16_t clip_by_sign(int32_t s) { return (int16_t)((int16_t)s == s ? s : (s >> 31) ^ 0x7fff); }
NOINLINE int16_t mix_two(int16_t a, int16_t b) { return clip(a + b); }
NOINLINE int16_t mix_half(int16_t a, int16_t b) { return (int16_t)((a + b) >> 1); }
NOINLINE int32_t middle(int32_t l, int32_t r) { return (l + r) >> 1; }
NOINLINE int32_t side(int32_t l, int32_t r) { return l - r; }
NOINLINE int32_t left_again(int32_t m, int32_t s) { return m + ((s + (s & 1)) >> 1); }
NOINLINE int16_t gain_q15(int16_t s, int16_t gain) { return (int16_t)((s * gain + 0x4000) >> 15); }
NOINLINE int32_t gain_q31(int32_t s, int32_t gain) { return (int32_t)(((int64_t)s * gain + (1 << 30)) >> 31); }
NOINLINE int32_t multiply_q16(int32_t a, int32_t b) { return (int32_t)((int64_t)a * b >> 16); }
NOINLINE int32_t round_q8(int32_t x) { return (x + 128) >> 8; }
NOINLINE int32_t round_even_q8(int32_t x) { return (x + 127 + (x >> 8 & 1)) >> 8; }
NOINLINE int32_t round_away_q8(int32_t x) { return x < 0 ? -((-x + 128) >> 8) : (x + 128) >> 8; }
NOINLINE int32_t floor_q16(int32_t x) { return x & ~0xffff; }
NOINLINE int32_t ceil_q16(int32_t x) { return (int32_t)(((uint32_t)x + 0xffff) & 0xffff0000u); }
NOINLINE uint32_t fraction_q16(int32_t x) { return (uint32_t)x & 0xffff; }
NOINLINE int32_t interpolate(int32_t a, int32_t b, uint16_t t) { return a + (int32_t)((int64_t)(b - a) * t >> 16); }
NOINLINE int16_t fade(int16_t s, int left, int length) { return (int16_t)(s * left / length); }
NOINLINE int32_t low_pass(int32_t state, int32_t s) { return state + ((s - state) >> 3); }
NOINLINE int32_t dc_block(int32_t before, int32_t s, int32_t out) { return s - before + out - (out >> 6); }
NOINLINE uint16_t magnitude(int16_t s) { return (uint16_t)(s < 0 ? -s : s); }
NOINLINE int16_t rectified(int16_t s) { return (int16_t)(s & ~(s >> 15)); }
NOINLINE int16_t triangle(uint32_t phase)
{
    return (int16_t)((phase ^ (uint32_t)((int32_t)phase >> 31)) >> 15 ^ 0x8000);
}
NOINLINE uint32_t phase_step(uint32_t hertz) { return (uint32_t)(((uint64_t)hertz << 32) / 48000); }
NOINLINE uint32_t to_milliseconds(uint32_t frames) { return (uint32_t)((uint64_t)frames * 1000 / 44100); }

NOINLINE uint8_t mu_law(int16_t s)
{
    unsigned sign = s < 0 ? 0x80 : 0, x = (unsigned)(s < 0 ? -s : s);
    x = (x > 32635 ? 32635 : x) + 132;
    unsigned e = 24 - (unsigned)__builtin_clz(x);
    return (uint8_t)~(sign | e << 4 | (x >> (e + 3) & 15));
}
NOINLINE int16_t mu_expand(uint8_t u)
{
    unsigned v = (uint8_t)~u;
    int x = (int)((((v & 15) << 3) + 132) << (v >> 4 & 7)) - 132;
    return (int16_t)(v & 0x80 ? -x : x);
}

static uint64_t digest;

NOINLINE void mix(int64_t value) { digest = (digest ^ (uint64_t)value) * 0x100000001b3u + 1; }

int main(void)
{
    uint32_t x = 3, phase = 0, wrong = 0;
    int32_t state = 0, out = 0, before = 0;
    for (int i = 0; i < 1500; i++) {
        x = x * 1664525u + 1013904223u;
        int16_t a = (int16_t)(x >> 16), b = (int16_t)(x >> 7);
        int32_t s = (int32_t)x >> 7, t = (int32_t)(x << 5) >> 8;
        uint32_t pair = pack_stereo(a, b);
        wrong += left_of(pair) != a || right_of(pair) != b || clip(s) != clip_by_sign(s);
        wrong += left_again(middle(a, b), side(a, b)) != a;
        wrong += mu_expand(mu_law(mu_expand((uint8_t)i))) != mu_expand((uint8_t)i);
        phase += phase_step(440), state = low_pass(state, a), out = dc_block(before, b, out), before = b;
        mix(from_unsigned8((uint8_t)x) + offset_binary(b));
        mix(from24((uint8_t)a, (uint8_t)b, (int8_t)s) ^ extend24(x) ^ clip24(s * 2));
        mix(mix_two(a, b) + 2 * mix_half(a, b) + gain_q15(a, b) + gain_q31(s, t) + multiply_q16(s, t));
        mix(round_q8(s) + round_even_q8(t) + round_away_q8(s));
        mix((int64_t)floor_q16(s) + ceil_q16(t) + fraction_q16(s) + interpolate(a, b, (uint16_t)x) + fade(a, i, 1500));
        mix(magnitude(a) + rectified(b) + triangle(phase));
        mix((int64_t)state * 3 + out + to_milliseconds(x));
    }
    printf("mu %02x %02x wrong %u digest %016llx\n", mu_law(1000), mu_law(-32768), wrong, (unsigned long long)digest);
    return 0;
}
