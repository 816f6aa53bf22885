/* Pixels packed in integers: 565, 1555, 4444 and 8888, blending, luma, tints and simple colour spaces. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE uint16_t pack565(uint8_t r, uint8_t g, uint8_t b)
{
    return (uint16_t)((r & 0xf8) << 8 | (g & 0xfc) << 3 | b >> 3);
}
NOINLINE uint8_t red565(uint16_t p) { return (uint8_t)((p >> 8 & 0xf8) | p >> 13); }
NOINLINE uint8_t green565(uint16_t p) { return (uint8_t)((p >> 3 & 0xfc) | (p >> 9 & 3)); }
NOINLINE uint8_t blue565(uint16_t p) { return (uint8_t)(p << 3 | (p >> 2 & 7)); }
NOINLINE uint16_t pack1555(uint32_t c)
{
    return (uint16_t)((c >> 16 & 0x8000) | (c >> 9 & 0x7c00) | (c >> 6 & 0x3e0) | (c >> 3 & 31));
}
NOINLINE uint32_t unpack1555(uint16_t p)
{
    uint32_t rgb = (p & 0x7c00u) << 9 | (p & 0x3e0u) << 6 | (p & 31u) << 3;
    return (uint32_t)-(p >> 15) << 24 | rgb | (rgb >> 5 & 0x70707);
}
NOINLINE uint16_t from1555(uint16_t p) { return (uint16_t)((p & 0x7fe0) << 1 | (p >> 4 & 0x20) | (p & 31)); }
NOINLINE uint32_t unpack4444(uint16_t p)
{
    uint32_t x = (p & 0xf000u) << 12 | (p & 0xf00u) << 8 | (p & 0xf0u) << 4 | (p & 15u);
    return x * 17;
}
NOINLINE uint32_t pack8888(uint8_t a, uint8_t r, uint8_t g, uint8_t b)
{
    return (uint32_t)a << 24 | (uint32_t)r << 16 | (uint32_t)g << 8 | b;
}
NOINLINE uint32_t argb_to_abgr(uint32_t c) { return (c & 0xff00ff00u) | (c >> 16 & 255) | (c & 255) << 16; }
NOINLINE uint32_t argb_to_rgba(uint32_t c) { return c << 8 | c >> 24; }
NOINLINE uint32_t halved(uint32_t c) { return c >> 1 & 0x7f7f7f7f; }
NOINLINE uint32_t average(uint32_t a, uint32_t b) { return (a & b) + (((a ^ b) & 0xfefefefeu) >> 1); }
NOINLINE uint16_t average565(uint16_t a, uint16_t b) { return (uint16_t)((a & b) + (((a ^ b) & 0xf7de) >> 1)); }
NOINLINE uint32_t brighten(uint32_t a, uint32_t b)
{
    uint32_t sum = ((a & 0x7f7f7f7f) + (b & 0x7f7f7f7f)), carry = (a & b) | ((a | b) & sum);
    carry &= 0x80808080u;
    return (sum ^ ((a ^ b) & 0x80808080u)) | ((carry << 1) - (carry >> 7));
}
NOINLINE uint32_t scale(uint32_t c, unsigned k)
{
    return ((c & 0xff00ff) * k >> 8 & 0xff00ff) | ((c >> 8 & 0xff00ff) * k & 0xff00ff00u);
}
NOINLINE uint8_t multiply(uint8_t a, uint8_t b) { return (uint8_t)((a * b + 128 + ((a * b + 128) >> 8)) >> 8); }
NOINLINE uint8_t screen(uint8_t a, uint8_t b) { return (uint8_t)(255 - multiply((uint8_t)~a, (uint8_t)~b)); }
NOINLINE uint8_t divide255(uint16_t x) { return (uint8_t)((x + 1u + (x >> 8)) >> 8); }
NOINLINE uint8_t clamp(int x) { return (uint8_t)(x < 0 ? 0 : x > 255 ? 255 : x); }
NOINLINE uint8_t clamp_by_mask(int x) { return (uint8_t)((x | ((255 - x) >> 31)) & ~(x >> 31)); }
NOINLINE uint8_t luma(uint8_t r, uint8_t g, uint8_t b) { return (uint8_t)((r * 77 + g * 150 + b * 29) >> 8); }
NOINLINE int blue_difference(int r, int g, int b) { return ((-43 * r - 85 * g + 128 * b + 128) >> 8) + 128; }
NOINLINE uint8_t red_of(int y, int cr) { return clamp(y + ((359 * (cr - 128) + 128) >> 8)); }
NOINLINE int green_chroma(int r, int g, int b) { return g - ((r + b) >> 1); }
NOINLINE int lifted_luma(int co, int cg, int b) { return b + (co >> 1) + (cg >> 1); }
NOINLINE uint8_t widest(uint8_t r, uint8_t g, uint8_t b)
{
    uint8_t high = r > g ? r : g, low = r < g ? r : g;
    return (uint8_t)((high > b ? high : b) - (low < b ? low : b));
}
NOINLINE uint8_t grey3(uint8_t v) { return (uint8_t)(v * 36 + (v >> 1)); }
NOINLINE uint8_t to332(uint32_t c) { return (uint8_t)((c >> 16 & 0xe0) | (c >> 11 & 0x1c) | (c >> 6 & 3)); }

static uint64_t digest;

NOINLINE void mix(uint32_t value) { digest = (digest ^ value) * 0x100000001b3u + 1; }

int main(void)
{
    uint32_t c = 0x804020, wrong = 0;
    for (unsigned i = 0; i < 1500; i++) {
        uint32_t old = c;
        c = c * 1664525u + 1013904223u;
        uint8_t r = (uint8_t)(c >> 16), g = (uint8_t)(c >> 8), b = (uint8_t)(c >> 24);
        uint16_t p = (uint16_t)(c >> 5);
        int v = (int)(c >> 8 & 1023) - 300;
        wrong += pack565(red565(p), green565(p), blue565(p)) != p || clamp(v) != clamp_by_mask(v);
        wrong += pack1555(unpack1555(p)) != p || multiply(r, g) != (r * g * 2 + 255) / 510;
        wrong += argb_to_abgr(argb_to_abgr(c)) != c;
        mix(from1555(p) ^ unpack4444(p) ^ pack8888(r, g, b, r) ^ argb_to_rgba(c));
        mix(halved(c) + average(c, old) + average565(p, (uint16_t)old) + brighten(c, old) + scale(c, i & 255));
        mix(screen(r, g) * 4u + divide255((uint16_t)(r * g)));
        mix(luma(r, g, b) * 8u);
        mix((uint32_t)(blue_difference(r, g, b) + red_of(g, b) * 4 + green_chroma(r, g, b) * 8 + lifted_luma(r, g, b)));
        mix(widest(r, g, b) + grey3(r & 7) * 2u + to332(c) * 8u);
    }
    printf("white %08x wrong %u digest %016llx\n", unpack1555(0xffff), wrong, (unsigned long long)digest);
    return 0;
}
