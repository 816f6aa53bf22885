/* Rotations of every width, bit and byte reversals, and the finalizers of hash functions. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE uint8_t left8(uint8_t x, unsigned n) { return (uint8_t)(x << (n & 7) | x >> (-n & 7)); }
NOINLINE uint16_t left16(uint16_t x, unsigned n) { return (uint16_t)(x << (n & 15) | x >> (-n & 15)); }
NOINLINE uint32_t left32(uint32_t x, unsigned n) { return x << (n & 31) | x >> (-n & 31); }
NOINLINE uint64_t left64(uint64_t x, unsigned n) { return x << (n & 63) | x >> (-n & 63); }
NOINLINE uint32_t right32(uint32_t x, unsigned n) { return x >> (n & 31) | x << (-n & 31); }
NOINLINE uint64_t right64(uint64_t x, unsigned n) { return x >> (n & 63) | x << (-n & 63); }
NOINLINE uint8_t left8_by3(uint8_t x) { return (uint8_t)(x << 3 | x >> 5); }
NOINLINE uint32_t left32_by7(uint32_t x) { return x << 7 | x >> 25; }
NOINLINE uint64_t sigma(uint64_t x) { return left64(x, 63) ^ left64(x, 56) ^ x >> 7; }
NOINLINE uint32_t sigma32(uint32_t x)
{
    return (x >> 2 | x << 30) ^ (x >> 13 | x << 19) ^ (x >> 22 | x << 10);
}

NOINLINE uint8_t reverse8(uint8_t x) { return (uint8_t)((x * 0x0202020202ull & 0x010884422010ull) % 1023); }
NOINLINE uint32_t reverse32(uint32_t x)
{
    x = (x & 0x55555555) << 1 | (x >> 1 & 0x55555555);
    x = (x & 0x33333333) << 2 | (x >> 2 & 0x33333333);
    x = (x & 0x0f0f0f0f) << 4 | (x >> 4 & 0x0f0f0f0f);
    return __builtin_bswap32(x);
}
NOINLINE uint64_t swap_bytes(uint64_t x)
{
    x = (x & 0x00ff00ff00ff00ffu) << 8 | (x >> 8 & 0x00ff00ff00ff00ffu);
    x = (x & 0x0000ffff0000ffffu) << 16 | (x >> 16 & 0x0000ffff0000ffffu);
    return x << 32 | x >> 32;
}
NOINLINE uint32_t swap_middle(uint32_t x) { return (x & 0xff0000ffu) | (x & 0xff00) << 8 | (x >> 8 & 0xff00); }
NOINLINE uint32_t shuffle_step(uint32_t x)
{
    uint32_t t = (x ^ x >> 4) & 0x00f000f0;
    return x ^ t ^ t << 4;
}

NOINLINE uint32_t fmix32(uint32_t h)
{
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}
NOINLINE uint64_t fmix64(uint64_t h)
{
    h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
}
NOINLINE uint64_t splitmix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
NOINLINE uint32_t jenkins_step(uint32_t h, uint8_t b) { return (h + b) * 1025 ^ (h + b) * 1025 >> 6; }
NOINLINE uint32_t jenkins_end(uint32_t h)
{
    h += h << 3;
    h ^= h >> 11;
    return h + (h << 15);
}
NOINLINE uint32_t wang(uint32_t x)
{
    x = (x ^ 61) ^ x >> 16;
    x += x << 3;
    x = (x ^ x >> 4) * 0x27d4eb2d;
    return x ^ x >> 15;
}
NOINLINE uint32_t fnv_step(uint32_t h, uint8_t b) { return (h ^ b) * 16777619u; }
NOINLINE uint32_t times33(uint32_t h, uint8_t b) { return (h << 5) + h + b; }
NOINLINE uint32_t sdbm(uint32_t h, uint8_t b) { return b + (h << 6) + (h << 16) - h; }
NOINLINE uint16_t pearson_like(uint16_t h, uint8_t b) { return (uint16_t)((h ^ b) * 167 + (h >> 8)); }
NOINLINE uint64_t combine(uint64_t a, uint64_t b) { return a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2)); }
NOINLINE uint32_t reduce(uint32_t hash, uint32_t n) { return (uint32_t)((uint64_t)hash * n >> 32); }
NOINLINE uint32_t fibonacci_slot(uint64_t h) { return (uint32_t)(h * 11400714819323198485u >> 54); }
NOINLINE uint32_t xorshift32(uint32_t x)
{
    x ^= x << 13;
    x ^= x >> 17;
    return x ^ x << 5;
}
NOINLINE uint64_t xorshift64s(uint64_t x)
{
    x ^= x >> 12;
    x ^= x << 25;
    return (x ^ x >> 27) * 0x2545f4914f6cdd1du;
}
NOINLINE uint32_t permuted(uint64_t state)
{
    return right32((uint32_t)((state >> 18 ^ state) >> 27), (unsigned)(state >> 59));
}

static uint64_t digest;

NOINLINE void mix(uint64_t value) { digest = (digest ^ value) * 0x100000001b3u + 1; }

int main(void)
{
    uint64_t y = 1;
    uint32_t a = 0, b = 2166136261u, c = 5381, d = 0, wrong = 0;
    uint16_t e = 0;
    for (unsigned i = 0; i < 1500; i++) {
        y = splitmix(y);
        uint32_t x = (uint32_t)y;
        wrong += left32(right32(x, i), i) != x || right64(left64(y, i), i) != y || reverse32(reverse32(x)) != x;
        wrong += swap_bytes(y) != __builtin_bswap64(y) || reverse8((uint8_t)x) != reverse32(x) >> 24;
        uint8_t byte = left8((uint8_t)x, i);
        a = jenkins_step(a, byte), b = fnv_step(b, byte), c = times33(c, byte);
        d = sdbm(d, byte), e = pearson_like(e, byte);
        mix(left16((uint16_t)x, i) + left8_by3(byte) + left32_by7(x));
        mix(sigma(y) ^ sigma32(x) ^ swap_middle(x) ^ shuffle_step(x));
        mix(fmix32(x) ^ fmix64(y) ^ wang(x) ^ combine(y, x) ^ reduce(x, i));
        mix(fibonacci_slot(y) ^ xorshift32(x) ^ xorshift64s(y) ^ permuted(y));
    }
    printf("%08x %08x %08x %08x %04x ", jenkins_end(a), b, c, d, e);
    printf("wrong %u digest %016llx\n", wrong, (unsigned long long)digest);
    return 0;
}
