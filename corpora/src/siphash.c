/* A keyed 64-bit hash built from add-rotate-xor rounds in the manner of SipHash-2-4. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

struct state {
    uint64_t a, b, c, d;
};

NOINLINE uint64_t rotate(uint64_t x, unsigned n) { return (x << n) | (x >> (64 - n)); }

NOINLINE uint64_t load_le64(const uint8_t *p, size_t n)
{
    uint64_t value = 0;
    while (n != 0)
        value = value << 8 | p[--n];
    return value;
}

NOINLINE void round_of(struct state *s)
{
    s->a += s->b;
    s->b = rotate(s->b, 13) ^ s->a;
    s->a = rotate(s->a, 32);
    s->c += s->d;
    s->d = rotate(s->d, 16) ^ s->c;
    s->a += s->d;
    s->d = rotate(s->d, 21) ^ s->a;
    s->c += s->b;
    s->b = rotate(s->b, 17) ^ s->c;
    s->c = rotate(s->c, 32);
}

NOINLINE void absorb(struct state *s, uint64_t word)
{
    s->d ^= word;
    round_of(s);
    round_of(s);
    s->a ^= word;
}

NOINLINE uint64_t siphash(const uint8_t *p, size_t n, uint64_t k0, uint64_t k1)
{
    struct state s = {k0 ^ 0x736f6d6570736575ull, k1 ^ 0x646f72616e646f6dull, k0 ^ 0x6c7967656e657261ull,
                      k1 ^ 0x7465646279746573ull};
    size_t whole = n & ~(size_t)7;
    for (size_t i = 0; i < whole; i += 8)
        absorb(&s, load_le64(p + i, 8));
    absorb(&s, (uint64_t)n << 56 | load_le64(p + whole, n & 7));
    s.c ^= 0xff;
    for (int i = 0; i < 4; i++)
        round_of(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}

int main(void)
{
    const uint64_t k0 = 0x0706050403020100ull, k1 = 0x0f0e0d0c0b0a0908ull;
    uint8_t data[64];
    uint64_t mix = 0;
    unsigned buckets[16] = {0};

    for (unsigned i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)i;
    for (size_t n = 0; n < 64; n += 7)
        printf("%2zu %016llx\n", n, (unsigned long long)siphash(data, n, k0, k1));
    for (unsigned i = 0; i < 2000; i++) {
        mix ^= siphash(data, i & 63, k0 + i, mix);
        buckets[mix >> 60]++;
    }
    printf("mix %016llx\n", (unsigned long long)mix);
    for (int i = 0; i < 16; i++)
        printf("%u%c", buckets[i], i == 15 ? '\n' : ' ');
    return 0;
}
