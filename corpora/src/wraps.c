/* Counters that wrap, alignment, calendar days without tables, codes of integers, bits counted by hand. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE uint32_t elapsed(uint32_t now, uint32_t then) { return now - then; }
NOINLINE int expired(uint32_t now, uint32_t deadline) { return (int32_t)(now - deadline) >= 0; }
NOINLINE uint64_t unwrap(uint64_t last, uint32_t low) { return last + (uint32_t)(low - (uint32_t)last); }
NOINLINE unsigned next_index(unsigned i, unsigned n) { return i + 1 == n ? 0 : i + 1; }
NOINLINE unsigned previous_index(unsigned i, unsigned n) { return (i == 0 ? n : i) - 1; }
NOINLINE unsigned ring_used(unsigned head, unsigned tail) { return (head - tail) & 31; }
NOINLINE int wrap_angle(int degrees)
{
    return degrees > 180 ? degrees - 360 : degrees <= -180 ? degrees + 360 : degrees;
}
NOINLINE uint64_t align_up(uint64_t x, uint64_t to) { return (x + to - 1) & (0 - to); }
NOINLINE uint64_t align_down(uint64_t x, uint64_t to) { return x & ~(to - 1); }
NOINLINE uint32_t align_up16(uint32_t x) { return (x + 15) & ~15u; }
NOINLINE uint32_t padding(uint32_t x) { return -x & 7; }
NOINLINE uint32_t pages(uint64_t bytes) { return (uint32_t)((bytes >> 12) + ((bytes & 4095) != 0)); }
NOINLINE uint32_t power_above(uint32_t x)
{
    x--;
    x |= x >> 1;
    x |= x >> 2;
    x |= x >> 4;
    x |= x >> 8;
    return (x | x >> 16) + 1;
}
NOINLINE unsigned leading_zeros(uint32_t x)
{
    unsigned n = 0, s = (x < 0x10000) << 4;
    n += s, x <<= s, s = (x < 0x1000000) << 3;
    n += s, x <<= s, s = (x < 0x10000000) << 2;
    n += s, x <<= s, s = (x < 0x40000000) << 1;
    n += s, x <<= s;
    return n + (x < 0x80000000u) + (x == 0);
}
NOINLINE unsigned trailing_zeros(uint32_t x)
{
    x &= 0 - x;
    return 31 - ((x & 0x55555555) != 0) - 2 * ((x & 0x33333333) != 0) - 4 * ((x & 0x0f0f0f0f) != 0)
           - 8 * ((x & 0x00ff00ff) != 0) - 16 * ((x & 0x0000ffff) != 0);
}
NOINLINE uint32_t zigzag(int32_t x) { return (uint32_t)x << 1 ^ (uint32_t)(x >> 31); }
NOINLINE int64_t unzigzag(uint64_t x) { return (int64_t)(x >> 1 ^ (0 - (x & 1))); }
NOINLINE uint64_t to_gray(uint64_t x) { return x ^ x >> 1; }
NOINLINE uint8_t from_gray(uint8_t x)
{
    x ^= x >> 1;
    x ^= x >> 2;
    return x ^ x >> 4;
}
NOINLINE uint32_t to_negabinary(int32_t x) { return ((uint32_t)x + 0xaaaaaaaau) ^ 0xaaaaaaaau; }
NOINLINE int32_t from_negabinary(uint32_t x) { return (int32_t)((x ^ 0xaaaaaaaau) - 0xaaaaaaaau); }
NOINLINE uint32_t next_permutation(uint32_t x)
{
    uint32_t low = x & (0 - x), ripple = x + low;
    return ripple | (x ^ ripple) / low >> 2;
}
NOINLINE int days_from_civil(int y, int m, int d)
{
    y -= m <= 2;
    int era = (y >= 0 ? y : y - 399) / 400, year = y - era * 400, day = (153 * (m > 2 ? m - 3 : m + 9) + 2) / 5 + d - 1;
    return era * 146097 + year * 365 + year / 4 - year / 100 + day - 719468;
}
NOINLINE unsigned month_days(unsigned m, int leap) { return m == 2 ? 28 + (unsigned)leap : 30 | (m ^ m >> 3); }
NOINLINE int is_leap(int y) { return (y & (y % 100 == 0 ? 15 : 3)) == 0; }
NOINLINE int weekday(int days) { return days >= -4 ? (days + 4) % 7 : (days + 5) % 7 + 6; }
NOINLINE unsigned easter_epact(unsigned y)
{
    return (19 * (y % 19) + y / 100 - y / 400 - (8 * (y / 100) + 13) / 25 + 15) % 30;
}

static uint64_t digest;

NOINLINE void mix(uint64_t value) { digest = (digest ^ value) * 0x100000001b3u + 1; }

int main(void)
{
    uint64_t time = 0;
    uint32_t x = 3, subset = 0xff, slot = 0, back = 0;
    unsigned wrong = 0;
    for (unsigned i = 1; i < 1500; i++) {
        uint32_t then = x, y = 1900 + i % 200, m = 1 + i % 12;
        x = x * 1664525u + 1013904223u;
        int32_t s = (int32_t)x >> (i & 31);
        int days = days_from_civil((int)y, (int)m, (int)(1 + i % 28));
        wrong += unzigzag(zigzag(s)) != s || from_negabinary(to_negabinary(s)) != s;
        wrong += from_gray((uint8_t)to_gray(x & 255)) != (x & 255);
        wrong += leading_zeros(x) != (unsigned)__builtin_clz(x) || trailing_zeros(x) != (unsigned)__builtin_ctz(x);
        wrong += month_days(m, is_leap((int)y)) - 1 + (unsigned)days_from_civil((int)y, (int)m, 1) + 1
                 != (unsigned)days_from_civil((int)(y + m / 12), (int)(m % 12 + 1), 1);
        time = unwrap(time, x), slot = next_index(slot, 23);
        back = previous_index(back, 17), subset = next_permutation(subset);
        mix(elapsed(x, then) + (uint32_t)expired(x, then));
        mix(time ^ slot ^ back << 8 ^ ring_used(slot, back) ^ (uint32_t)wrap_angle(s % 360) ^ subset);
        mix(align_up(time, 64) + align_down(time, 4096) + align_up16(x) + padding(x));
        mix(pages(time) + power_above(x >> (i & 31)));
        mix((uint32_t)weekday(days) + easter_epact(y));
    }
    printf("days %d weekday %d subset %x ", days_from_civil(2000, 3, 1), weekday(days_from_civil(2024, 2, 29)), subset);
    printf("wrong %u digest %016llx\n", wrong, (unsigned long long)digest);
    return 0;
}
