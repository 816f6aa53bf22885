/* Byte image filters: box blur, edge detection, threshold, histogram, ordered dither. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE static __attribute__((noinline))
#define W 48
#define H 32

typedef uint8_t image[H][W];

NOINLINE int clamp(int x, int high) { return x < 0 ? 0 : x > high ? high : x; }
NOINLINE int absolute(int x) { return x < 0 ? -x : x; }
NOINLINE uint8_t at(image in, int x, int y) { return in[clamp(y, H - 1)][clamp(x, W - 1)]; }

NOINLINE void paint(image out)
{
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            int dx = x - W / 2, dy = y - H / 2, square = dx * dx + dy * dy;
            out[y][x] = (uint8_t)(square < 120 ? 200 + (x ^ y) % 50 : x * 3 + y * 2);
        }
}

NOINLINE void blur(image out, image in)
{
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            unsigned sum = 4;
            for (int dy = -1; dy <= 1; dy++)
                for (int dx = -1; dx <= 1; dx++)
                    sum += at(in, x + dx, y + dy);
            out[y][x] = (uint8_t)(sum / 9);
        }
}

NOINLINE int gradient_x(image in, int x, int y)
{
    return at(in, x + 1, y - 1) + 2 * at(in, x + 1, y) + at(in, x + 1, y + 1) - at(in, x - 1, y - 1)
           - 2 * at(in, x - 1, y) - at(in, x - 1, y + 1);
}

NOINLINE int gradient_y(image in, int x, int y)
{
    return at(in, x - 1, y + 1) + 2 * at(in, x, y + 1) + at(in, x + 1, y + 1) - at(in, x - 1, y - 1)
           - 2 * at(in, x, y - 1) - at(in, x + 1, y - 1);
}

NOINLINE void edges(image out, image in)
{
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            out[y][x] = (uint8_t)clamp(absolute(gradient_x(in, x, y)) + absolute(gradient_y(in, x, y)), 255);
}

NOINLINE void dither(image out, image in)
{
    static const uint8_t bayer[4][4] = {{0, 8, 2, 10}, {12, 4, 14, 6}, {3, 11, 1, 9}, {15, 7, 13, 5}};
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            out[y][x] = in[y][x] > bayer[y & 3][x & 3] * 16 + 8 ? 255 : 0;
}

NOINLINE unsigned median(image in)
{
    unsigned histogram[256] = {0}, seen = 0, level = 0;
    for (int i = 0; i < W * H; i++)
        histogram[in[i / W][i % W]]++;
    while (seen + histogram[level] < W * H / 2)
        seen += histogram[level++];
    return level;
}

NOINLINE void report(const char *name, image in)
{
    uint32_t h = 2166136261u, sum = 0;
    for (int i = 0; i < W * H; i++) {
        h = (h ^ in[i / W][i % W]) * 16777619u;
        sum += in[i / W][i % W];
    }
    printf("%-7s hash %08x mean %u median %u\n", name, h, sum / (W * H), median(in));
}

int main(void)
{
    static image picture, work, other;

    paint(picture);
    report("picture", picture);
    blur(work, picture);
    report("blur", work);
    edges(other, work);
    report("edges", other);
    dither(other, picture);
    report("dither", other);
    for (int y = 0; y < H; y += 4) {
        for (int x = 0; x < W; x++)
            putchar(other[y][x] ? '#' : '.');
        putchar('\n');
    }
    return 0;
}
