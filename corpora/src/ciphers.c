/* Small ciphers: XTEA blocks, an RC4 stream, and a Caesar-Vigenere pair. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE static __attribute__((noinline))
#define DELTA 0x9e3779b9u

struct stream {
    uint8_t box[256], i, j;
};

NOINLINE uint32_t mix(uint32_t x) { return (x << 4 ^ x >> 5) + x; }

NOINLINE void encrypt(uint32_t *v, const uint32_t *key)
{
    uint32_t sum = 0;
    for (int i = 0; i < 32; i++) {
        v[0] += mix(v[1]) ^ (sum + key[sum & 3]);
        sum += DELTA;
        v[1] += mix(v[0]) ^ (sum + key[sum >> 11 & 3]);
    }
}

NOINLINE void decrypt(uint32_t *v, const uint32_t *key)
{
    uint32_t sum = DELTA * 32;
    for (int i = 0; i < 32; i++) {
        v[1] -= mix(v[0]) ^ (sum + key[sum >> 11 & 3]);
        sum -= DELTA;
        v[0] -= mix(v[1]) ^ (sum + key[sum & 3]);
    }
}

NOINLINE void swap_bytes(uint8_t *a, uint8_t *b)
{
    uint8_t t = *a;
    *a = *b;
    *b = t;
}

NOINLINE void schedule(struct stream *s, const char *key, unsigned length)
{
    uint8_t j = 0;
    for (unsigned i = 0; i < 256; i++)
        s->box[i] = (uint8_t)i;
    for (unsigned i = 0; i < 256; i++) {
        j = (uint8_t)(j + s->box[i] + (uint8_t)key[i % length]);
        swap_bytes(&s->box[i], &s->box[j]);
    }
    s->i = s->j = 0;
}

NOINLINE uint8_t next_byte(struct stream *s)
{
    s->i = (uint8_t)(s->i + 1);
    s->j = (uint8_t)(s->j + s->box[s->i]);
    swap_bytes(&s->box[s->i], &s->box[s->j]);
    return s->box[(uint8_t)(s->box[s->i] + s->box[s->j])];
}

NOINLINE char shift_letter(char c, int by)
{
    int base = c >= 'a' && c <= 'z' ? 'a' : c >= 'A' && c <= 'Z' ? 'A' : 0;
    return base == 0 ? c : (char)(base + (c - base + by + 26) % 26);
}

NOINLINE void vigenere(char *text, const char *key, int direction)
{
    size_t n = strlen(key), at = 0;
    for (; *text != '\0'; text++)
        *text = shift_letter(*text, direction * (key[at++ % n] - 'a'));
}

int main(void)
{
    static const uint32_t key[4] = {0x00010203u, 0x04050607u, 0x08090a0bu, 0x0c0d0e0fu};
    uint32_t block[2] = {0x41424344u, 0x45464748u}, digest = 0;
    struct stream s;
    char text[] = "Attack the Redundant Moves at Dawn!";

    encrypt(block, key);
    printf("xtea %08x %08x", block[0], block[1]);
    decrypt(block, key);
    printf(" back %08x %08x\n", block[0], block[1]);
    for (int i = 0; i < 300; i++) {
        encrypt(block, key);
        digest = digest * 31 + (block[0] ^ block[1]);
    }
    schedule(&s, "Key", 3);
    printf("digest %08x rc4", digest);
    for (const char *p = "Plaintext"; *p != '\0'; p++)
        printf(" %02x", next_byte(&s) ^ (uint8_t)*p);
    vigenere(text, "lemon", 1);
    printf("\n%s\n", text);
    vigenere(text, "lemon", -1);
    printf("%s\n", text);
    return 0;
}
