/* Bit fields and masks: merge, extract, insert, exchange, set or clear on a condition, lowest-bit idioms. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE uint32_t merge(uint32_t a, uint32_t b, uint32_t mask) { return a ^ ((a ^ b) & mask); }
NOINLINE uint64_t blend(uint64_t a, uint64_t b, uint64_t mask) { return (a & ~mask) | (b & mask); }
NOINLINE uint32_t extract(uint32_t x, unsigned at, unsigned n) { return x >> at & ((1u << n) - 1); }
NOINLINE uint64_t insert(uint64_t x, uint64_t v, unsigned at, unsigned n)
{
    uint64_t mask = ((1ull << n) - 1) << at;
    return (x & ~mask) | (v << at & mask);
}
NOINLINE uint32_t exchange(uint32_t x, unsigned i, unsigned j, unsigned n)
{
    uint32_t t = ((x >> i) ^ (x >> j)) & ((1u << n) - 1);
    return x ^ (t << i | t << j);
}
NOINLINE uint64_t delta_swap(uint64_t x, uint64_t mask, unsigned n)
{
    uint64_t t = (x ^ x >> n) & mask;
    return x ^ t ^ t << n;
}
NOINLINE uint32_t set_or_clear(uint32_t x, uint32_t mask, int flag) { return x ^ (((uint32_t)-flag ^ x) & mask); }
NOINLINE uint32_t set_if(uint32_t x, uint32_t mask, int flag) { return flag ? x | mask : x; }
NOINLINE uint64_t clear_if(uint64_t x, uint64_t mask, int flag) { return flag ? x & ~mask : x; }
NOINLINE int32_t negate_if(int32_t x, int flag) { return (x ^ -flag) + flag; }
NOINLINE int64_t negate_unless(int64_t x, int flag) { return flag ? x : -x; }
NOINLINE uint32_t lowest(uint32_t x) { return x & (0 - x); }
NOINLINE uint64_t lowest64(uint64_t x) { return x & (~x + 1); }
NOINLINE uint8_t lowest8(uint8_t x) { return (uint8_t)(x & -x); }
NOINLINE uint32_t without_lowest(uint32_t x) { return x & (x - 1); }
NOINLINE uint32_t lowest_zero(uint32_t x) { return ~x & (x + 1); }
NOINLINE uint32_t trailing_mask(uint32_t x) { return ~x & (x - 1); }
NOINLINE uint32_t trailing_ones(uint32_t x) { return x & ~(x + 1); }
NOINLINE uint64_t up_to_lowest(uint64_t x) { return x ^ (x - 1); }
NOINLINE uint32_t smear_right(uint32_t x) { return x | (x - 1); }
NOINLINE uint64_t smear_left(uint64_t x) { return x | (0 - x); }
NOINLINE uint32_t strip_ones(uint32_t x) { return x & (x + 1); }
NOINLINE uint32_t strip_run(uint32_t x) { return ((x | (x - 1)) + 1) & x; }
NOINLINE int is_power(uint64_t x) { return x != 0 && (x & (x - 1)) == 0; }
NOINLINE int is_mask(uint32_t x) { return (x & (x + 1)) == 0; }
NOINLINE int has_bit(uint64_t x, unsigned n) { return x >> n & 1; }
NOINLINE uint64_t low_mask(unsigned n) { return ~0ull >> (64 - n); }
NOINLINE uint32_t range_mask(unsigned low, unsigned high) { return (2u << high) - (1u << low); }
NOINLINE uint8_t swap_nibbles(uint8_t x) { return (uint8_t)(x << 4 | x >> 4); }
NOINLINE uint32_t swap_pairs(uint32_t x) { return (x & 0x55555555) << 1 | (x >> 1 & 0x55555555); }
NOINLINE uint64_t absorb(uint64_t a, uint64_t b) { return (a & b) | (a & ~b) | (a ^ b); }
NOINLINE uint32_t sum_by_logic(uint32_t a, uint32_t b) { return (a ^ b) + 2 * (a & b); }
NOINLINE uint32_t union_by_sum(uint32_t a, uint32_t b) { return a + b - (a & b); }
NOINLINE uint32_t next_subset(uint32_t s, uint32_t set) { return (s - set) & set; }

static uint64_t digest;

NOINLINE void mix(uint64_t value) { digest = (digest ^ value) * 0x100000001b3u + 1; }

int main(void)
{
    uint64_t seed = 9;
    unsigned wrong = 0, subsets = 0;
    for (unsigned i = 0; i < 1500; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t y = (seed ^ seed >> 31) >> (i & 63), z = seed >> 7;
        uint32_t x = (uint32_t)y, w = (uint32_t)z;
        int flag = w & 1;
        wrong += merge(x, w, 0xff00ff) != (uint32_t)blend(x, w, 0xff00ff) || absorb(y, z) != (y | z);
        wrong += sum_by_logic(x, w) != x + w || union_by_sum(x, w) != (x | w) || lowest(x) + without_lowest(x) != x;
        mix(extract(x, i & 15, 1 + (i & 7)) ^ insert(y, z, i & 31, 9));
        mix(exchange(x, 2, 17, i & 7) ^ delta_swap(y, 0x00ff00ff00ff00ffu, 8) ^ set_or_clear(x, w, flag));
        mix(set_if(x, 0x81, flag) ^ clear_if(y, z, flag) ^ (uint32_t)negate_if((int32_t)(x >> 1), flag));
        mix((uint64_t)negate_unless((int64_t)(y >> 1), flag) + lowest64(y) + lowest8((uint8_t)x) + lowest_zero(x));
        mix(trailing_mask(x) ^ trailing_ones(w) ^ up_to_lowest(z) ^ smear_right(x));
        mix(smear_left(y) ^ strip_ones(x) ^ strip_run(w) ^ (uint64_t)is_power(y) ^ (uint64_t)is_mask(x));
        mix((uint64_t)has_bit(y, i & 63));
        mix(low_mask(1 + i % 64) ^ range_mask(i & 7, 8 + (i & 15)) ^ swap_nibbles((uint8_t)x) ^ swap_pairs(w));
    }
    for (uint32_t s = next_subset(0, 0x2468); s != 0; s = next_subset(s, 0x2468))
        subsets++;
    printf("subsets %u wrong %u digest %016llx\n", subsets, wrong, (unsigned long long)digest);
    return 0;
}
