/* Run-length encoding in the PackBits style, delta coding, and their inverses. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE static __attribute__((noinline))
#define SIZE 1024

NOINLINE size_t run_length(const uint8_t *p, size_t n)
{
    size_t run = 1;
    while (run < n && run < 128 && p[run] == p[0])
        run++;
    return run;
}

NOINLINE size_t literal_length(const uint8_t *p, size_t n)
{
    size_t length = 1;
    while (length < n && length < 128 && !(length + 1 < n && p[length] == p[length + 1]))
        length++;
    return length;
}

NOINLINE size_t pack(const uint8_t *in, size_t n, uint8_t *out)
{
    size_t used = 0;
    for (size_t at = 0; at < n;) {
        size_t run = run_length(in + at, n - at);
        if (run > 1) {
            out[used++] = (uint8_t)(257 - run);
            out[used++] = in[at];
            at += run;
        } else {
            size_t length = literal_length(in + at, n - at);
            out[used++] = (uint8_t)(length - 1);
            memcpy(out + used, in + at, length);
            used += length;
            at += length;
        }
    }
    return used;
}

NOINLINE size_t unpack(const uint8_t *in, size_t n, uint8_t *out)
{
    size_t used = 0;
    for (size_t at = 0; at < n;) {
        int8_t code = (int8_t)in[at++];
        if (code >= 0) {
            memcpy(out + used, in + at, (size_t)code + 1);
            used += (size_t)code + 1;
            at += (size_t)code + 1;
        } else {
            memset(out + used, in[at++], (size_t)(1 - code));
            used += (size_t)(1 - code);
        }
    }
    return used;
}

NOINLINE void delta_encode(uint8_t *p, size_t n)
{
    uint8_t previous = 0;
    for (size_t i = 0; i < n; i++) {
        uint8_t current = p[i];
        p[i] = (uint8_t)(current - previous);
        previous = current;
    }
}

NOINLINE void delta_decode(uint8_t *p, size_t n)
{
    uint8_t total = 0;
    for (size_t i = 0; i < n; i++)
        p[i] = total = (uint8_t)(total + p[i]);
}

NOINLINE void fill(uint8_t *p, int kind)
{
    for (unsigned i = 0; i < SIZE; i++)
        p[i] = (uint8_t)(kind == 0 ? i >> 5 : kind == 1 ? i * 3 : kind == 2 ? i * i >> 4 : (i & 64) / 64 * i);
}

int main(void)
{
    static uint8_t data[SIZE], work[SIZE], packed[2 * SIZE], back[SIZE];

    for (int kind = 0; kind < 4; kind++) {
        fill(data, kind);
        size_t plain = pack(data, SIZE, packed);
        size_t restored = unpack(packed, plain, back);
        int same = restored == SIZE && memcmp(data, back, SIZE) == 0;
        memcpy(work, data, SIZE);
        delta_encode(work, SIZE);
        size_t delta = pack(work, SIZE, packed);
        unpack(packed, delta, back);
        delta_decode(back, SIZE);
        same &= memcmp(data, back, SIZE) == 0;
        printf("kind %d plain %zu delta %zu same %d\n", kind, plain, delta, same);
    }
    return 0;
}
