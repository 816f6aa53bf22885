/* A ChaCha-style stream cipher block and a keystream XOR. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE uint32_t rotate(uint32_t x, unsigned n) { return x << n | x >> (32 - n); }

NOINLINE void quarter(uint32_t *s, int a, int b, int c, int d)
{
    s[a] += s[b];
    s[d] = rotate(s[d] ^ s[a], 16);
    s[c] += s[d];
    s[b] = rotate(s[b] ^ s[c], 12);
    s[a] += s[b];
    s[d] = rotate(s[d] ^ s[a], 8);
    s[c] += s[d];
    s[b] = rotate(s[b] ^ s[c], 7);
}

NOINLINE void double_round(uint32_t *s)
{
    for (int i = 0; i < 4; i++)
        quarter(s, i, i + 4, i + 8, i + 12);
    for (int i = 0; i < 4; i++)
        quarter(s, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
}

NOINLINE uint32_t load(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

NOINLINE void store(uint8_t *p, uint32_t x)
{
    for (int i = 0; i < 4; i++, x >>= 8)
        p[i] = (uint8_t)x;
}

NOINLINE void block(uint8_t *out, const uint8_t *key, uint32_t counter, const uint8_t *nonce)
{
    uint32_t initial[16] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u}, s[16];
    for (int i = 0; i < 8; i++)
        initial[4 + i] = load(key + 4 * i);
    initial[12] = counter;
    for (int i = 0; i < 3; i++)
        initial[13 + i] = load(nonce + 4 * i);
    memcpy(s, initial, sizeof s);
    for (int i = 0; i < 10; i++)
        double_round(s);
    for (int i = 0; i < 16; i++)
        store(out + 4 * i, s[i] + initial[i]);
}

NOINLINE void apply(uint8_t *data, size_t n, const uint8_t *key, const uint8_t *nonce)
{
    uint8_t stream[64];
    for (size_t i = 0; i < n; i++) {
        if ((i & 63) == 0)
            block(stream, key, (uint32_t)(i >> 6), nonce);
        data[i] ^= stream[i & 63];
    }
}

NOINLINE void print(const uint8_t *p, int n)
{
    for (int i = 0; i < n; i++)
        printf("%02x%s", p[i], i % 16 == 15 ? "\n" : "");
}

int main(void)
{
    static const uint8_t nonce[12] = {0, 0, 0, 9, 0, 0, 0, 0x4a};
    static uint8_t data[1500];
    uint8_t key[32], out[64];
    uint32_t sum = 0, wrong = 0;

    for (unsigned i = 0; i < 32; i++)
        key[i] = (uint8_t)i;
    block(out, key, 1, nonce);
    print(out, 64);
    for (unsigned i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 5);
    apply(data, sizeof data, key, nonce);
    for (unsigned i = 0; i < sizeof data; i++)
        sum = sum * 16777619u ^ data[i];
    apply(data, sizeof data, key, nonce);
    for (unsigned i = 0; i < sizeof data; i++)
        wrong += data[i] != (uint8_t)(i * 5);
    printf("sum %08x wrong %u\n", sum, wrong);
    return 0;
}
