/* Colour arithmetic: RGB565 packing, YUV, HSV, blending and saturated adds on bytes. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE uint8_t clamp(int x) { return (uint8_t)(x < 0 ? 0 : x > 255 ? 255 : x); }
NOINLINE uint8_t red(uint32_t c) { return (uint8_t)(c >> 16); }
NOINLINE uint8_t green(uint32_t c) { return (uint8_t)(c >> 8); }
NOINLINE uint8_t blue(uint32_t c) { return (uint8_t)c; }
NOINLINE uint32_t rgb(uint8_t r, uint8_t g, uint8_t b) { return (uint32_t)r << 16 | (uint32_t)g << 8 | b; }

NOINLINE uint16_t to565(uint32_t c)
{
    return (uint16_t)((red(c) & 0xf8) << 8 | (green(c) & 0xfc) << 3 | blue(c) >> 3);
}

NOINLINE uint32_t from565(uint16_t p)
{
    uint8_t r = p >> 11, g = p >> 5 & 63, b = p & 31;
    return rgb((uint8_t)(r << 3 | r >> 2), (uint8_t)(g << 2 | g >> 4), (uint8_t)(b << 3 | b >> 2));
}

NOINLINE uint32_t to_yuv(uint32_t c)
{
    int r = red(c), g = green(c), b = blue(c);
    int y = (77 * r + 150 * g + 29 * b + 128) / 256;
    int u = (-43 * r - 85 * g + 128 * b + 32896) / 256;
    int v = (128 * r - 107 * g - 21 * b + 32896) / 256;
    return rgb(clamp(y), clamp(u), clamp(v));
}

NOINLINE uint32_t from_yuv(uint32_t c)
{
    int y = red(c), u = green(c) - 128, v = blue(c) - 128;
    return rgb(clamp(y + 359 * v / 256), clamp(y - (88 * u + 183 * v) / 256), clamp(y + 454 * u / 256));
}

NOINLINE uint16_t hue(uint32_t c)
{
    int r = red(c), g = green(c), b = blue(c);
    int high = r > g ? (r > b ? r : b) : g > b ? g : b;
    int low = r < g ? (r < b ? r : b) : g < b ? g : b;
    int spread = high - low;
    if (spread == 0)
        return 0;
    int angle = high == r ? 60 * (g - b) / spread : high == g ? 120 + 60 * (b - r) / spread : 240 + 60 * (r - g) / spread;
    return (uint16_t)(angle < 0 ? angle + 360 : angle);
}

NOINLINE uint8_t divide255(unsigned x) { return (uint8_t)((x + 1 + (x >> 8)) >> 8); }

NOINLINE uint32_t blend(uint32_t a, uint32_t b, uint8_t alpha)
{
    unsigned keep = 255u - alpha;
    return rgb(divide255(red(a) * keep + red(b) * alpha), divide255(green(a) * keep + green(b) * alpha),
               divide255(blue(a) * keep + blue(b) * alpha));
}

NOINLINE uint32_t average_bytes(uint32_t a, uint32_t b) { return (a & b) + (((a ^ b) & 0xfefefefeu) >> 1); }

NOINLINE uint32_t saturated_add(uint32_t a, uint32_t b)
{
    uint32_t low = (a & 0x7f7f7f7fu) + (b & 0x7f7f7f7fu);
    uint32_t carry = ((a & b) | ((a | b) & low)) & 0x80808080u;
    return (low ^ ((a ^ b) & 0x80808080u)) | ((carry << 1) - (carry >> 7));
}

int main(void)
{
    static const uint32_t samples[] = {0, 0xffffff, 0xff0000, 0x00ff00, 0x0000ff, 0x123456, 0x808080, 0xfedcba};
    uint32_t sum = 0, drift = 0;

    for (unsigned i = 0; i < sizeof samples / sizeof *samples; i++) {
        uint32_t c = samples[i];
        printf("%06x 565 %04x back %06x yuv %06x back %06x hue %u\n", c, to565(c), from565(to565(c)), to_yuv(c),
               from_yuv(to_yuv(c)), hue(c));
    }
    for (uint32_t i = 0, c = 0x345678; i < 4000; i++) {
        uint32_t next = (c * 5 + i) & 0xffffff, back = from_yuv(to_yuv(c));
        int d = red(back) - red(c);
        drift += (uint32_t)(d < 0 ? -d : d);
        sum = sum * 33 + (blend(c, next, (uint8_t)i) ^ average_bytes(c, next) ^ saturated_add(c, next)) + hue(next);
        c = next;
    }
    printf("sum %08x drift %u\n", sum, drift);
    return 0;
}
