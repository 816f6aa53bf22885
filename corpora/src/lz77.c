/* A byte-oriented LZ77 coder with a hash chain of one, and its decoder. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE static __attribute__((noinline))
#define SIZE 3000

static int16_t recent[256];

NOINLINE uint8_t hash3(const uint8_t *p)
{
    uint32_t key = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;
    return (uint8_t)(key * 2654435761u >> 24);
}

NOINLINE int match_length(const uint8_t *a, const uint8_t *b, int limit)
{
    int n = 0;
    while (n < limit && a[n] == b[n])
        n++;
    return n;
}

NOINLINE int min(int a, int b) { return a < b ? a : b; }

/* A match is two bytes, 1llllldd dddddddd; a literal is one byte below 128. */
NOINLINE int compress(const uint8_t *in, int n, uint8_t *out)
{
    int used = 0;
    memset(recent, -1, sizeof recent);
    for (int at = 0; at < n;) {
        int length = 0, distance = 0;
        if (at + 3 <= n) {
            int16_t *slot = &recent[hash3(in + at)];
            distance = at - *slot;
            if (*slot >= 0 && distance < 1024)
                length = match_length(in + *slot, in + at, min(31, n - at));
            *slot = (int16_t)at;
        }
        if (length >= 3) {
            out[used++] = (uint8_t)(0x80 | length << 2 | distance >> 8);
            out[used++] = (uint8_t)distance;
            at += length;
        } else {
            out[used++] = in[at++] & 0x7f;
        }
    }
    return used;
}

NOINLINE int expand(const uint8_t *in, int n, uint8_t *out)
{
    int used = 0;
    for (int at = 0; at < n; at++) {
        uint8_t code = in[at];
        if (code < 0x80) {
            out[used++] = code;
            continue;
        }
        int length = code >> 2 & 31, distance = (code & 3) << 8 | in[++at];
        for (int i = 0; i < length; i++, used++)
            out[used] = out[used - distance];
    }
    return used;
}

NOINLINE void write_text(uint8_t *out, unsigned seed)
{
    static const char *const words[] = {"shift ", "mask ", "rotate ", "compare ", "select ", "extend ", "and ", "or "};
    unsigned used = 0;
    while (used < SIZE) {
        const char *word = words[(seed = seed * 1103515245u + 12345u) >> 29];
        while (*word != '\0' && used < SIZE)
            out[used++] = (uint8_t)*word++;
    }
}

int main(void)
{
    static uint8_t text[SIZE], packed[SIZE + 16], back[SIZE + 32];

    for (unsigned seed = 1; seed <= 5; seed++) {
        uint32_t sum = 0;
        write_text(text, seed);
        int n = compress(text, SIZE, packed);
        int m = expand(packed, n, back);
        for (int i = 0; i < n; i++)
            sum = sum * 131 + packed[i];
        printf("seed %u packed %d back %d same %d sum %08x\n", seed, n, m, memcmp(text, back, SIZE) == 0, sum);
    }
    return 0;
}
