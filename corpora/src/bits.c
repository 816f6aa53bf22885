/* Classic bit manipulations: isolate, clear, round, rotate, reverse, average. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE uint32_t lowest_set(uint32_t x) { return x & -x; }
NOINLINE uint32_t clear_lowest(uint32_t x) { return x & (x - 1); }
NOINLINE uint32_t set_lowest_zero(uint32_t x) { return x | (x + 1); }
NOINLINE uint32_t trailing_mask(uint32_t x) { return ~x & (x - 1); }
NOINLINE int is_power_of_two(uint32_t x) { return x != 0 && (x & (x - 1)) == 0; }
NOINLINE uint32_t rotate_left(uint32_t x, unsigned n) { return (x << (n & 31)) | (x >> (-n & 31)); }
NOINLINE uint32_t rotate_right(uint32_t x, unsigned n) { return (x >> (n & 31)) | (x << (-n & 31)); }

NOINLINE uint32_t round_up_power(uint32_t x)
{
    x -= 1;
    x |= x >> 1;
    x |= x >> 2;
    x |= x >> 4;
    x |= x >> 8;
    x |= x >> 16;
    return x + 1;
}

NOINLINE uint32_t reverse_bits(uint32_t x)
{
    x = ((x & 0x55555555u) << 1) | ((x >> 1) & 0x55555555u);
    x = ((x & 0x33333333u) << 2) | ((x >> 2) & 0x33333333u);
    x = ((x & 0x0f0f0f0fu) << 4) | ((x >> 4) & 0x0f0f0f0fu);
    x = ((x & 0x00ff00ffu) << 8) | ((x >> 8) & 0x00ff00ffu);
    return (x << 16) | (x >> 16);
}

NOINLINE int32_t branchless_abs(int32_t x)
{
    uint32_t mask = -(uint32_t)(x < 0);
    return (int32_t)(((uint32_t)x ^ mask) - mask);
}

NOINLINE int32_t branchless_min(int32_t a, int32_t b) { return b ^ ((a ^ b) & -(a < b)); }
NOINLINE int32_t branchless_max(int32_t a, int32_t b) { return a ^ ((a ^ b) & -(a < b)); }
NOINLINE int sign_of(int32_t x) { return (x > 0) - (x < 0); }
NOINLINE uint32_t average_floor(uint32_t a, uint32_t b) { return (a & b) + ((a ^ b) >> 1); }
NOINLINE uint32_t average_ceil(uint32_t a, uint32_t b) { return (a | b) - ((a ^ b) >> 1); }
NOINLINE int opposite_signs(int32_t a, int32_t b) { return (a ^ b) < 0; }

NOINLINE uint32_t next_same_popcount(uint32_t x)
{
    uint32_t low = x & -x;
    uint32_t ripple = x + low;
    return ripple | (((x ^ ripple) / low) >> 2);
}

NOINLINE uint32_t merge(uint32_t a, uint32_t b, uint32_t mask) { return a ^ ((a ^ b) & mask); }

int main(void)
{
    uint32_t x = 0x12345678u, sum = 0, powers = 0;
    int32_t signs = 0;

    for (unsigned i = 0; i < 2000; i++) {
        int32_t a = (int32_t)(x >> 1) - 0x40000000, b = (int32_t)(reverse_bits(x) >> 2);
        sum += lowest_set(x) ^ clear_lowest(x) ^ set_lowest_zero(x) ^ trailing_mask(x);
        sum = rotate_left(sum, i) + rotate_right(x, i + 3);
        sum ^= round_up_power(x >> 3) + reverse_bits(x);
        sum += (uint32_t)(branchless_min(a, b) ^ branchless_max(b, a / 3));
        sum += (uint32_t)branchless_abs(a) + average_floor(x, sum) - average_ceil(sum, x);
        signs += sign_of(a) + opposite_signs(a, b);
        powers += (unsigned)is_power_of_two(round_up_power(x & 0xffff));
        x = merge(x * 1664525u + 1013904223u, x, 0x00000f00u);
    }
    printf("sum %08x signs %d powers %u\n", sum, signs, powers);

    x = 7;
    for (int i = 0; i < 10; i++) {
        printf("%u ", x);
        x = next_same_popcount(x);
    }
    printf("\nreverse %08x round %u abs %d\n", reverse_bits(0x1234u), round_up_power(1000), branchless_abs(-77));
    return 0;
}
