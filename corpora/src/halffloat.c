/* Floating point by bits: half and single conversions, comparison and addition in integers. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE uint32_t half_to_single(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff;
    if (exponent == 31)
        return sign | 0x7f800000u | fraction << 13;
    if (exponent == 0) {
        if (fraction == 0)
            return sign;
        for (exponent = 1; !(fraction & 0x400); exponent--)
            fraction <<= 1;
        fraction &= 0x3ff;
    }
    return sign | (exponent + 112) << 23 | fraction << 13;
}

NOINLINE uint32_t round_shift(uint32_t x, unsigned n)
{
    uint32_t half = 1u << (n - 1), rest = x & ((1u << n) - 1), kept = x >> n;
    return kept + (rest > half || (rest == half && (kept & 1)));
}

NOINLINE uint16_t single_to_half(uint32_t f)
{
    uint16_t sign = (uint16_t)(f >> 16 & 0x8000);
    uint32_t exponent = f >> 23 & 0xff, fraction = f & 0x7fffff;
    if (exponent == 0xff)
        return (uint16_t)(sign | 0x7c00 | (fraction ? 0x200 | fraction >> 13 : 0));
    if (exponent > 142)
        return sign | 0x7c00;
    if (exponent > 112)
        return (uint16_t)(sign + round_shift((exponent - 112) << 23 | fraction, 13));
    if (exponent < 102)
        return sign;
    return (uint16_t)(sign | round_shift(fraction | 0x800000, 126 - exponent));
}

NOINLINE int is_nan(uint16_t h) { return (h & 0x7fff) > 0x7c00; }
NOINLINE int32_t order_key(uint16_t h) { return h & 0x8000 ? 0x8000 - h : h; }

NOINLINE int less(uint16_t a, uint16_t b) { return !is_nan(a) && !is_nan(b) && order_key(a) < order_key(b); }

NOINLINE uint16_t single_to_brain(uint32_t f) { return (uint16_t)((f + 0x7fff + (f >> 16 & 1)) >> 16); }

NOINLINE uint32_t int_to_single(int32_t x)
{
    uint32_t sign = x < 0 ? 0x80000000u : 0, magnitude = x < 0 ? 0u - (uint32_t)x : (uint32_t)x, exponent = 158;
    if (magnitude == 0)
        return 0;
    for (; !(magnitude & 0x80000000u); magnitude <<= 1)
        exponent--;
    return sign + ((exponent - 1) << 23) + round_shift(magnitude, 8);
}

NOINLINE int32_t single_to_int(uint32_t f)
{
    int shift = (int)(f >> 23 & 0xff) - 150;
    uint32_t magnitude = (f & 0x7fffff) | 0x800000;
    if (shift > 7)
        return f >> 31 ? INT32_MIN : INT32_MAX;
    magnitude = shift >= 0 ? magnitude << shift : shift > -24 ? magnitude >> -shift : 0;
    return f >> 31 ? -(int32_t)magnitude : (int32_t)magnitude;
}

NOINLINE uint32_t halve(uint32_t f) { return (f & 0x7f800000u) > 0x00800000u ? f - 0x00800000u : f & 0x80000000u; }

int main(void)
{
    static const uint32_t singles[] = {0x3f800000u, 0xc0490fdbu, 0x477fe000u, 0x477ff000u, 0x33800000u, 0x7f800000u,
                                       0x7fc00000u, 0x387fc000u, 0x80000000u};
    uint32_t wrong = 0, pairs = 0, sum = 0;

    for (uint32_t h = 0; h < 0x10000; h++) {
        uint16_t back = single_to_half(half_to_single((uint16_t)h));
        wrong += back != h && !is_nan((uint16_t)h);
        pairs += (uint32_t)less((uint16_t)h, (uint16_t)(h * 40503u));
    }
    for (int32_t i = -200000; i < 200000; i += 37) {
        uint32_t f = int_to_single(i * 4001);
        int32_t exact = single_to_int(f) - i * 4001;
        wrong += exact > 64 || exact < -64;
        sum = sum * 7 + f + single_to_brain(f) + (uint32_t)single_to_int(halve(f));
    }
    printf("wrong %u pairs %u sum %08x\n", wrong, pairs, sum);
    for (unsigned i = 0; i < sizeof singles / sizeof *singles; i++)
        printf("%08x half %04x brain %04x\n", singles[i], single_to_half(singles[i]), single_to_brain(singles[i]));
    printf("int %08x %08x %08x\n", int_to_single(1), int_to_single(-16777217), int_to_single(INT32_MIN));
    return 0;
}
