/* Byte order by hand: swaps, network order, unaligned loads, unions, tag-length-value records. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE static __attribute__((noinline))

union word {
    uint32_t value;
    uint16_t half[2];
    uint8_t byte[4];
};

NOINLINE uint16_t swap16(uint16_t x) { return (uint16_t)(x << 8 | x >> 8); }
NOINLINE uint32_t swap32(uint32_t x) { return x << 24 | (x & 0xff00) << 8 | (x >> 8 & 0xff00) | x >> 24; }
NOINLINE uint64_t swap64(uint64_t x) { return (uint64_t)swap32((uint32_t)x) << 32 | swap32((uint32_t)(x >> 32)); }
NOINLINE uint16_t load_be16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }
NOINLINE uint32_t load_be32(const uint8_t *p) { return (uint32_t)load_be16(p) << 16 | load_be16(p + 2); }
NOINLINE int32_t load_le24(const uint8_t *p) { return (int32_t)((uint32_t)(p[0] | p[1] << 8 | p[2] << 16) ^ 0x800000u) - 0x800000; }

NOINLINE uint32_t load_native(const uint8_t *p)
{
    uint32_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

NOINLINE void store_be(uint8_t *p, uint64_t x, int n)
{
    while (n-- > 0) {
        p[n] = (uint8_t)x;
        x >>= 8;
    }
}

NOINLINE int is_little(void)
{
    union word w = {.value = 1};
    return w.byte[0];
}

NOINLINE uint32_t swap_halves(uint32_t x)
{
    union word w = {.value = x};
    uint16_t first = w.half[0];
    w.half[0] = swap16(w.half[1]);
    w.half[1] = swap16(first);
    return w.value;
}

NOINLINE int write_record(uint8_t *out, uint8_t tag, uint32_t value)
{
    int n = 1 + (value > 0xff) + (value > 0xffff) + (value > 0xffffff);
    out[0] = tag;
    out[1] = (uint8_t)n;
    store_be(out + 2, value, n);
    return n + 2;
}

NOINLINE int read_record(const uint8_t *in, uint8_t *tag, uint32_t *value)
{
    *tag = in[0];
    *value = 0;
    for (int i = 0; i < in[1]; i++)
        *value = *value << 8 | in[2 + i];
    return in[1] + 2;
}

NOINLINE void print_address(uint32_t address, unsigned prefix)
{
    uint32_t mask = prefix == 0 ? 0 : ~0u << (32 - prefix), network = address & mask;
    printf("%u.%u.%u.%u/%u last .%u\n", network >> 24, network >> 16 & 255, network >> 8 & 255, network & 255, prefix,
           (network | ~mask) & 255);
}

int main(void)
{
    uint8_t buffer[4096];
    int used = 0, wrong = 0;
    uint32_t sum = 0;
    uint64_t x = 0x0123456789abcdefull;

    for (int i = 0; i < 500; i++) {
        wrong += swap64(swap64(x)) != x || swap_halves((uint32_t)x) != swap32((uint32_t)x);
        used += write_record(buffer + used, (uint8_t)i, (uint32_t)(x >> (i & 63)));
        x = x * 6364136223846793005ull + 1442695040888963407ull;
    }
    for (int at = 0; at < used;) {
        uint8_t tag;
        uint32_t value;
        at += read_record(buffer + at, &tag, &value);
        sum = sum * 37 + tag + value;
    }
    for (int at = 0; at + 4 <= used; at += 3) {
        wrong += is_little() && load_native(buffer + at) != swap32(load_be32(buffer + at));
        sum += (uint32_t)load_le24(buffer + at);
    }
    printf("used %d wrong %d sum %08x\n", used, wrong, sum);
    printf("%04x %08x %016llx\n", swap16(0x1234), swap32(0x12345678u), (unsigned long long)swap64(0x0123456789abcdefull));
    print_address(0xc0a8017bu, 24);
    print_address(0x0a141e28u, 13);
    print_address(0xc0a8017bu, 27);
    return 0;
}
