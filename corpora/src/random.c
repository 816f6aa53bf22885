/* Pseudo-random generators: xorshift, LCG, PCG, splitmix, LFSR and a lagged twister. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))
#define LAG 37

static uint32_t xorshift_state = 2463534242u, lcg_state = 1, lagged[LAG];
static uint64_t pcg_state = 0x853c49e6748fea9bull, split_state = 42;
static uint16_t lfsr_state = 0xace1;
static unsigned lagged_at;

NOINLINE uint32_t xorshift(void)
{
    xorshift_state ^= xorshift_state << 13;
    xorshift_state ^= xorshift_state >> 17;
    return xorshift_state ^= xorshift_state << 5;
}

NOINLINE uint32_t lcg(void)
{
    lcg_state = lcg_state * 22695477u + 1;
    return lcg_state >> 16 & 0x7fff;
}

NOINLINE uint32_t pcg(void)
{
    uint64_t old = pcg_state;
    pcg_state = old * 6364136223846793005ull + 0xda3e39cb94b95bdbull;
    uint32_t shifted = (uint32_t)(((old >> 18) ^ old) >> 27);
    unsigned turn = (unsigned)(old >> 59);
    return shifted >> turn | shifted << (-turn & 31);
}

NOINLINE uint64_t splitmix(void)
{
    uint64_t z = split_state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

NOINLINE uint16_t lfsr(void)
{
    unsigned low = lfsr_state & 1u;
    lfsr_state >>= 1;
    return lfsr_state ^= (uint16_t)(-low & 0xb400u);
}

NOINLINE uint32_t twister(void)
{
    uint32_t high = lagged[lagged_at] & 0x80000000u, low = lagged[(lagged_at + 1) % LAG] & 0x7fffffffu;
    uint32_t y = high | low;
    y = lagged[(lagged_at + 19) % LAG] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    lagged[lagged_at] = y;
    lagged_at = (lagged_at + 1) % LAG;
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

NOINLINE uint32_t bounded(uint32_t random, uint32_t bound) { return (uint32_t)((uint64_t)random * bound >> 32); }

NOINLINE uint32_t shuffle_digest(void)
{
    uint8_t deck[52];
    uint32_t h = 0;
    for (uint8_t i = 0; i < 52; i++)
        deck[i] = i;
    for (uint32_t i = 51; i > 0; i--) {
        uint32_t j = bounded(pcg(), i + 1);
        uint8_t t = deck[i];
        deck[i] = deck[j];
        deck[j] = t;
    }
    for (int i = 0; i < 52; i++)
        h = h * 53 + deck[i];
    return h;
}

int main(void)
{
    uint32_t mix[4] = {0}, period = 0, heads = 0, faces[6] = {0};

    for (unsigned i = 0; i < LAG; i++)
        lagged[i] = (uint32_t)splitmix();
    for (int i = 0; i < 5000; i++) {
        mix[0] = mix[0] * 3 + xorshift();
        mix[1] = mix[1] * 5 + lcg();
        mix[2] = mix[2] * 7 + (uint32_t)(splitmix() >> 32);
        mix[3] = mix[3] * 9 + twister();
        heads += pcg() >> 31;
        faces[bounded(twister(), 6)]++;
    }
    do
        period++;
    while (lfsr() != 0xace1);
    printf("mix %08x %08x %08x %08x\n", mix[0], mix[1], mix[2], mix[3]);
    printf("heads %u period %u deck %08x\n", heads, period, shuffle_digest());
    for (int i = 0; i < 6; i++)
        printf("%u%c", faces[i], i == 5 ? '\n' : ' ');
    return 0;
}
