/* Checksums: CRC-32, CRC-16, CRC-8, Adler-32, Fletcher-16, internet checksum, XOR. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE static __attribute__((noinline))

static uint32_t crc_table[256];

NOINLINE uint32_t crc_entry(uint32_t index)
{
    for (int bit = 0; bit < 8; bit++)
        index = (index >> 1) ^ (0xedb88320u & -(index & 1));
    return index;
}

NOINLINE uint32_t crc32(const uint8_t *p, size_t n)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < n; i++)
        crc = (crc >> 8) ^ crc_table[(crc ^ p[i]) & 0xff];
    return ~crc;
}

NOINLINE uint16_t crc16(const uint8_t *p, size_t n)
{
    uint16_t crc = 0xffff;
    for (size_t i = 0; i < n; i++) {
        crc = (uint16_t)(crc ^ p[i] << 8);
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
    }
    return crc;
}

NOINLINE uint8_t crc8(const uint8_t *p, size_t n)
{
    uint8_t crc = 0;
    while (n-- != 0) {
        crc ^= *p++;
        for (int bit = 0; bit < 8; bit++)
            crc = (uint8_t)((crc << 1) ^ ((crc >> 7) * 7));
    }
    return crc;
}

NOINLINE uint32_t adler32(const uint8_t *p, size_t n)
{
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < n; i++) {
        a = (a + p[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

NOINLINE uint16_t fletcher16(const uint8_t *p, size_t n)
{
    uint16_t low = 0, high = 0;
    for (size_t i = 0; i < n; i++) {
        low = (uint16_t)((low + p[i]) % 255);
        high = (uint16_t)((high + low) % 255);
    }
    return (uint16_t)(high << 8 | low);
}

NOINLINE uint16_t internet(const uint8_t *p, size_t n)
{
    uint32_t sum = 0;
    for (; n > 1; p += 2, n -= 2)
        sum += (uint32_t)p[0] << 8 | p[1];
    if (n == 1)
        sum += (uint32_t)p[0] << 8;
    while (sum >> 16 != 0)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

NOINLINE uint8_t longitudinal(const uint8_t *p, size_t n)
{
    uint8_t sum = 0;
    while (n-- != 0)
        sum = (uint8_t)(sum + *p++);
    return (uint8_t)((sum ^ 0xff) + 1);
}

NOINLINE void report(const char *name, const uint8_t *p, size_t n)
{
    printf("%-7s crc32 %08x crc16 %04x crc8 %02x adler %08x fletcher %04x internet %04x lrc %02x\n", name, crc32(p, n),
           crc16(p, n), crc8(p, n), adler32(p, n), fletcher16(p, n), internet(p, n), longitudinal(p, n));
}

int main(void)
{
    static uint8_t block[2001];

    for (uint32_t i = 0; i < 256; i++)
        crc_table[i] = crc_entry(i);
    for (uint32_t i = 0; i < sizeof block; i++)
        block[i] = (uint8_t)(i * i + (i >> 3));
    report("digits", (const uint8_t *)"123456789", 9);
    report("empty", block, 0);
    report("block", block, sizeof block);
    return 0;
}
