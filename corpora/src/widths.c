/* Conversions between widths and signs, comparisons across them, carries and selects. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE int32_t extend8(uint32_t x) { return (int8_t)x; }
NOINLINE int32_t extend16(uint32_t x) { return (int16_t)x; }
NOINLINE int64_t extend32(uint64_t x) { return (int32_t)x; }
NOINLINE uint64_t zero8(uint64_t x) { return (uint8_t)x; }
NOINLINE uint64_t zero16(uint64_t x) { return (uint16_t)x; }
NOINLINE uint64_t zero32(uint64_t x) { return (uint32_t)x; }
NOINLINE uint8_t wrap_add8(uint8_t a, uint8_t b) { return (uint8_t)(a + b); }
NOINLINE int16_t wrap_multiply16(int16_t a, int16_t b) { return (int16_t)(a * b); }
NOINLINE int below(uint32_t a, uint32_t b) { return a < b; }
NOINLINE int less(int32_t a, int32_t b) { return a < b; }
NOINLINE int below8(uint8_t a, uint8_t b) { return a < b; }
NOINLINE int less64(int64_t a, int64_t b) { return a <= b; }
NOINLINE int three_way(uint64_t a, uint64_t b) { return (a > b) - (a < b); }
NOINLINE int in_range(int32_t x, int32_t low, int32_t high) { return x >= low && x <= high; }
NOINLINE int32_t select(int c, int32_t a, int32_t b) { return c ? a : b; }
NOINLINE int64_t select64(int64_t x, int64_t a, int64_t b) { return x >= 0 ? a : b; }
NOINLINE uint32_t mask_if(int c) { return -(uint32_t)(c != 0); }
NOINLINE uint32_t carry_of(uint32_t a, uint32_t b) { return a + b < a; }
NOINLINE uint32_t high_half(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); }
NOINLINE uint64_t high_half64(uint64_t a, uint64_t b) { return (uint64_t)((unsigned __int128)a * b >> 64); }
NOINLINE int32_t signed_high(int32_t a, int32_t b) { return (int32_t)((int64_t)a * b / 4294967296); }
NOINLINE uint32_t saturate_add(uint32_t a, uint32_t b) { return (a + b) | mask_if(a + b < a); }
NOINLINE uint32_t saturate_subtract(uint32_t a, uint32_t b) { return a > b ? a - b : 0; }
NOINLINE uint32_t difference(uint32_t a, uint32_t b) { return a > b ? a - b : b - a; }
NOINLINE int not_zero(uint64_t x) { return x != 0; }
NOINLINE int both_zero(uint32_t a, uint32_t b) { return a == 0 && b == 0; }
NOINLINE uint32_t test_bit(uint64_t x, unsigned n) { return (uint32_t)(x >> (n & 63)) & 1; }
NOINLINE uint64_t change_bit(uint64_t x, unsigned n) { return x ^ 1ull << (n & 63); }

NOINLINE uint64_t high_by_parts(uint64_t a, uint64_t b)
{
    uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    uint64_t middle = a1 * b0 + (a0 * b0 >> 32), cross = a0 * b1 + (uint32_t)middle;
    return a1 * b1 + (middle >> 32) + (cross >> 32);
}

int main(void)
{
    uint64_t x = 0x9e3779b97f4a7c15ull, sum = 0;
    uint32_t counts[8] = {0}, wrong = 0;

    for (unsigned i = 0; i < 3000; i++) {
        uint64_t y = x;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        uint32_t a = (uint32_t)(x >> (i & 31)), b = (uint32_t)y;
        int32_t s = (int32_t)a, t = (int32_t)b;
        sum += (uint64_t)extend8(a) ^ (uint64_t)extend16(b) ^ (uint64_t)extend32(x);
        sum ^= zero8(x) + zero16(y) * 3 + zero32(x ^ y);
        sum += wrap_add8((uint8_t)a, (uint8_t)b) + (uint64_t)wrap_multiply16((int16_t)a, (int16_t)b);
        counts[0] += (uint32_t)below(a, b);
        counts[1] += (uint32_t)less(s, t);
        counts[2] += (uint32_t)below8((uint8_t)a, (uint8_t)b);
        counts[3] += (uint32_t)less64((int64_t)x, (int64_t)y);
        counts[4] += (uint32_t)(three_way(x, y) + 1);
        counts[5] += (uint32_t)in_range(s, -100000000, 700000000);
        counts[6] += carry_of(a, b) + test_bit(x, a);
        counts[7] += (uint32_t)(not_zero(x & 3) + both_zero(a & 3, b & 1));
        sum += (uint64_t)select(less(s, t), s, t) + (uint64_t)select64((int64_t)x, s, t);
        sum = change_bit(sum, b) * 3 + high_half(a, b) + (uint64_t)signed_high(s, t);
        sum += saturate_add(a, b) ^ saturate_subtract(a, b) ^ difference(a, b);
        wrong += high_half64(x, y) != high_by_parts(x, y);
    }
    printf("sum %016llx wrong %u\n", (unsigned long long)sum, wrong);
    for (int i = 0; i < 8; i++)
        printf("%u%c", counts[i], i == 7 ? '\n' : ' ');
    return 0;
}
