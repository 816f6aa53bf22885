/* Saturating Q15 signal processing: FIR and IIR filters, mu-law, Goertzel, CORDIC. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE int16_t saturate16(int32_t x) { return (int16_t)(x > 32767 ? 32767 : x < -32768 ? -32768 : x); }
NOINLINE int16_t add16(int16_t a, int16_t b) { return saturate16(a + b); }
NOINLINE int16_t subtract16(int16_t a, int16_t b) { return saturate16(a - b); }
NOINLINE int16_t negate16(int16_t a) { return a == -32768 ? 32767 : (int16_t)-a; }
NOINLINE int16_t multiply_q15(int16_t a, int16_t b) { return saturate16((a * b + 16384) >> 15); }
NOINLINE uint8_t add_u8(uint8_t a, uint8_t b) { return (uint8_t)((a + b) | -((a + b) >> 8)); }

NOINLINE int32_t add32(int32_t a, int32_t b)
{
    uint32_t sum = (uint32_t)a + (uint32_t)b;
    uint32_t overflow = (~((uint32_t)a ^ (uint32_t)b) & ((uint32_t)a ^ sum)) >> 31;
    return overflow ? (int32_t)(0x7fffffffu + ((uint32_t)a >> 31)) : (int32_t)sum;
}

NOINLINE int16_t fir(const int16_t *history, const int16_t *taps, int n)
{
    int32_t total = 16384;
    for (int i = 0; i < n; i++)
        total = add32(total, history[i] * taps[i]);
    return saturate16(total >> 15);
}

NOINLINE int16_t low_pass(int16_t *state, int16_t in, int16_t alpha)
{
    *state = add16(*state, multiply_q15(alpha, subtract16(in, *state)));
    return *state;
}

NOINLINE uint8_t mu_encode(int16_t sample)
{
    int sign = sample < 0 ? 0x80 : 0, exponent = 7;
    int magnitude = (sign ? -(sample + (sample == -32768)) : sample) + 132;
    magnitude = magnitude > 32767 ? 32767 : magnitude;
    while (exponent > 0 && !(magnitude & 0x80 << exponent))
        exponent--;
    return (uint8_t)~(sign | exponent << 4 | (magnitude >> (exponent + 3) & 15));
}

NOINLINE int16_t mu_decode(uint8_t code)
{
    code = (uint8_t)~code;
    int exponent = code >> 4 & 7, magnitude = (((code & 15) << 3) + 132) << exponent;
    return (int16_t)(code & 0x80 ? 132 - magnitude : magnitude - 132);
}

NOINLINE int16_t triangle(uint16_t phase)
{
    int32_t x = phase & 0x8000 ? 0xffff - phase : phase;
    return saturate16(2 * x - 32768);
}

NOINLINE int32_t cordic_length(int32_t x, int32_t y)
{
    x = x < 0 ? -x : x;
    for (int i = 0; i < 14; i++) {
        int32_t dx = x >> i, dy = y >> i;
        x += y > 0 ? dy : -dy;
        y += y > 0 ? -dx : dx;
    }
    return (int32_t)((int64_t)x * 19898 >> 15);
}

int main(void)
{
    static const int16_t taps[8] = {-820, 1640, 6553, 11000, 11000, 6553, 1640, -820};
    int16_t history[8] = {0}, state = 0, worst = 0;
    uint32_t sum = 0;
    uint8_t level = 0;

    for (unsigned i = 0; i < 3000; i++) {
        int16_t in = add16(triangle((uint16_t)(i * 2111)), multiply_q15(triangle((uint16_t)(i * 397)), 24000));
        for (int j = 7; j > 0; j--)
            history[j] = history[j - 1];
        history[0] = in;
        int16_t out = subtract16(fir(history, taps, 8), low_pass(&state, in, 1500));
        int16_t error = subtract16(mu_decode(mu_encode(in)), in);
        error = error < 0 ? negate16(error) : error;
        worst = error > worst ? error : worst;
        level = add_u8((uint8_t)(level / 2), (uint8_t)(out >> 8));
        sum = sum * 31 + (uint16_t)out + level;
    }
    printf("sum %08x worst %d state %d\n", sum, worst, state);
    printf("add %d %d %d negate %d\n", add32(INT32_MAX, 1), add32(INT32_MIN, -1), add32(-5, 3), negate16(-32768));
    printf("length %d %d %d\n", cordic_length(30000, 40000), cordic_length(-5000, 12000), cordic_length(7, -100000));
    return 0;
}
