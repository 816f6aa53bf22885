/* Canonical Huffman coding of a text, with a bit writer and a bit reader. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE static __attribute__((noinline))
#define SYMBOLS 32

static uint8_t length[SYMBOLS], stream[4096];
static uint32_t code[SYMBOLS];

NOINLINE int lightest(const uint32_t *weight, int n, int except)
{
    int best = -1;
    for (int i = 0; i < n; i++)
        if (weight[i] != 0 && i != except && (best < 0 || weight[i] < weight[best]))
            best = i;
    return best;
}

NOINLINE void build_lengths(const uint32_t *frequency)
{
    uint32_t weight[2 * SYMBOLS] = {0};
    int parent[2 * SYMBOLS] = {0}, used = SYMBOLS;
    memcpy(weight, frequency, SYMBOLS * sizeof *weight);
    for (;;) {
        int a = lightest(weight, used, -1), b = lightest(weight, used, a);
        if (b < 0)
            break;
        weight[used] = weight[a] + weight[b];
        weight[a] = weight[b] = 0;
        parent[a] = parent[b] = used++;
    }
    for (int i = 0; i < SYMBOLS; i++) {
        length[i] = 0;
        for (int node = i; parent[node] != 0; node = parent[node])
            length[i]++;
    }
}

NOINLINE void assign_codes(void)
{
    uint32_t next = 0;
    for (int bits = 1; bits < 32; bits++, next <<= 1)
        for (int i = 0; i < SYMBOLS; i++)
            if (length[i] == bits)
                code[i] = next++;
}

NOINLINE uint32_t put_bits(uint32_t at, uint32_t value, int bits)
{
    while (bits-- > 0) {
        stream[at >> 3] |= (uint8_t)((value >> bits & 1) << (at & 7));
        at++;
    }
    return at;
}

NOINLINE uint32_t get_bit(uint32_t at) { return stream[at >> 3] >> (at & 7) & 1; }

NOINLINE int read_symbol(uint32_t *at)
{
    uint32_t value = 0;
    for (int bits = 1; bits < 32; bits++) {
        value = value << 1 | get_bit((*at)++);
        for (int i = 0; i < SYMBOLS; i++)
            if (length[i] == bits && code[i] == value)
                return i;
    }
    return -1;
}

NOINLINE int symbol_of(char c) { return c >= 'a' && c <= 'z' ? c - 'a' + 1 : c == ' ' ? 0 : 27; }

int main(void)
{
    static const char text[] = "a register holds a value, a flag holds a bit, and a program is what happens between "
                               "them; every shift, mask and compare can be written in more than one way, "
                               "and some of the ways are shorter than the others.";
    uint32_t frequency[SYMBOLS] = {0}, end = 0, at = 0, sum = 0;
    int errors = 0;

    for (const char *p = text; *p != '\0'; p++)
        frequency[symbol_of(*p)]++;
    build_lengths(frequency);
    assign_codes();
    for (const char *p = text; *p != '\0'; p++)
        end = put_bits(end, code[symbol_of(*p)], length[symbol_of(*p)]);
    for (const char *p = text; *p != '\0'; p++)
        errors += read_symbol(&at) != symbol_of(*p);
    for (uint32_t i = 0; i < (end + 7) / 8; i++)
        sum = sum * 257 + stream[i];
    for (int i = 0; i < SYMBOLS; i++)
        if (length[i] != 0)
            printf("%d:%u/%d ", i, code[i], length[i]);
    printf("\nbits %u of %zu errors %d sum %08x\n", end, (sizeof text - 1) * 8, errors, sum);
    return 0;
}
