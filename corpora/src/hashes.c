/* Non-cryptographic hashes of strings: FNV-1a, djb2, one-at-a-time, murmur-like. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE uint32_t fnv32(const uint8_t *p, size_t n)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 16777619u;
    return h;
}

NOINLINE uint64_t fnv64(const uint8_t *p, size_t n)
{
    uint64_t h = 14695981039346656037ull;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 1099511628211ull;
    return h;
}

NOINLINE uint32_t djb2(const uint8_t *p, size_t n)
{
    uint32_t h = 5381;
    while (n-- != 0)
        h = (h << 5) + h + *p++;
    return h;
}

NOINLINE uint32_t one_at_a_time(const uint8_t *p, size_t n)
{
    uint32_t h = 0;
    for (size_t i = 0; i < n; i++) {
        h += p[i];
        h += h << 10;
        h ^= h >> 6;
    }
    h += h << 3;
    h ^= h >> 11;
    h += h << 15;
    return h;
}

NOINLINE uint32_t rotate(uint32_t x, int n) { return (x << n) | (x >> (32 - n)); }

NOINLINE uint32_t load_le32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

NOINLINE uint32_t scramble(uint32_t k) { return rotate(k * 0xcc9e2d51u, 15) * 0x1b873593u; }

NOINLINE uint32_t finalise(uint32_t h)
{
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    return h ^ (h >> 16);
}

NOINLINE uint32_t murmur(const uint8_t *p, size_t n, uint32_t seed)
{
    uint32_t h = seed, tail = 0;
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        h = rotate(h ^ scramble(load_le32(p + i)), 13) * 5 + 0xe6546b64u;
    for (size_t j = n; j > i; j--)
        tail = tail << 8 | p[j - 1];
    return finalise(h ^ scramble(tail) ^ (uint32_t)n);
}

int main(void)
{
    static const char *const words[] = {"", "a", "ab", "hash", "peephole", "superoptimizer", "the quick brown fox"};
    uint32_t mix = 0;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const uint8_t *p = (const uint8_t *)words[i];
        size_t n = strlen(words[i]);
        printf("%-20s %08x %016llx %08x %08x %08x\n", words[i], fnv32(p, n), (unsigned long long)fnv64(p, n),
               djb2(p, n), one_at_a_time(p, n), murmur(p, n, 42));
    }
    for (uint32_t i = 0; i < 3000; i++) {
        uint8_t key[7] = {(uint8_t)i, (uint8_t)(i >> 8), (uint8_t)(i * 7), 3, (uint8_t)~i, 5, 6};
        mix = rotate(mix, 5) ^ murmur(key, 4 + i % 4, mix) ^ fnv32(key, sizeof key);
    }
    printf("mix %08x\n", mix);
    return 0;
}
