/* Variable-length integers: LEB128 unsigned and signed, zigzag, prefix varints. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE int write_unsigned(uint64_t value, uint8_t *out)
{
    int n = 0;
    while (value >= 0x80) {
        out[n++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    out[n++] = (uint8_t)value;
    return n;
}

NOINLINE int read_unsigned(const uint8_t *in, uint64_t *value)
{
    int n = 0, shift = 0;
    *value = 0;
    do {
        *value |= (uint64_t)(in[n] & 0x7f) << shift;
        shift += 7;
    } while (in[n++] & 0x80);
    return n;
}

NOINLINE int64_t arithmetic_shift7(int64_t x) { return x < 0 ? ~(~x / 128) : x / 128; }

NOINLINE int write_signed(int64_t value, uint8_t *out)
{
    for (int n = 0;; n++) {
        uint8_t low = (uint8_t)(value & 0x7f);
        value = arithmetic_shift7(value);
        int done = (value == 0 && !(low & 0x40)) || (value == -1 && (low & 0x40));
        out[n] = (uint8_t)(low | (done ? 0 : 0x80));
        if (done)
            return n + 1;
    }
}

NOINLINE int read_signed(const uint8_t *in, int64_t *value)
{
    uint64_t bits;
    int n = read_unsigned(in, &bits);
    if (n < 10 && (in[n - 1] & 0x40))
        bits |= ~0ull << (7 * n);
    *value = (int64_t)bits;
    return n;
}

NOINLINE uint64_t zigzag(int64_t x) { return (uint64_t)x << 1 ^ -(uint64_t)(x < 0); }
NOINLINE int64_t unzigzag(uint64_t x) { return (int64_t)(x >> 1 ^ -(x & 1)); }

NOINLINE int write_prefix(uint32_t value, uint8_t *out)
{
    int extra = (value > 0x7f) + (value > 0x3fff) + (value > 0x1fffff);
    uint32_t word = value << (extra + 1) | ((1u << extra) - 1);
    for (int i = 0; i <= extra; i++)
        out[i] = (uint8_t)(word >> 8 * i);
    return extra + 1;
}

NOINLINE int read_prefix(const uint8_t *in, uint32_t *value)
{
    int extra = (in[0] & 1) + ((in[0] & 3) == 3) + ((in[0] & 7) == 7);
    uint32_t word = 0;
    for (int i = extra; i >= 0; i--)
        word = word << 8 | in[i];
    *value = word >> (extra + 1);
    return extra + 1;
}

int main(void)
{
    static const int64_t values[] = {0, 1, -1, 63, 64, -64, -65, 127, 128, 300, -123456, INT64_MAX, INT64_MIN};
    uint8_t bytes[10];
    uint32_t sum = 0, errors = 0, small;
    int64_t back;
    uint64_t bits;

    for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
        int n = write_signed(values[i], bytes);
        printf("%lld:", (long long)values[i]);
        for (int j = 0; j < n; j++)
            printf(" %02x", bytes[j]);
        errors += read_signed(bytes, &back) != n || back != values[i];
        errors += unzigzag(zigzag(values[i])) != values[i];
        printf(" zigzag %llu\n", (unsigned long long)zigzag(values[i]));
    }
    for (uint64_t i = 0, x = 1; i < 3000; i++, x = x * 6364136223846793005ull + 1442695040888963407ull) {
        uint64_t value = x >> (i & 63);
        int n = write_unsigned(value, bytes);
        errors += read_unsigned(bytes, &bits) != n || bits != value;
        sum = sum * 31 + bytes[n - 1] + (uint32_t)n;
        n = write_prefix((uint32_t)(value & 0xfffffff), bytes);
        errors += read_prefix(bytes, &small) != n || small != (value & 0xfffffff);
        sum += bytes[0];
    }
    printf("errors %u sum %08x\n", errors, sum);
    return 0;
}
