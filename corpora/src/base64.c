/* Base64, base32 and hexadecimal encoders and decoders. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE char sextet_char(unsigned v)
{
    if (v < 26)
        return (char)('A' + v);
    if (v < 52)
        return (char)('a' + v - 26);
    if (v < 62)
        return (char)('0' + v - 52);
    return v == 62 ? '+' : '/';
}

NOINLINE int sextet_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

NOINLINE int encode64(const uint8_t *in, int n, char *out)
{
    int used = 0;
    for (int i = 0; i < n; i += 3) {
        uint32_t group = (uint32_t)in[i] << 16;
        group |= i + 1 < n ? (uint32_t)in[i + 1] << 8 : 0;
        group |= i + 2 < n ? in[i + 2] : 0;
        out[used++] = sextet_char(group >> 18);
        out[used++] = sextet_char(group >> 12 & 63);
        out[used++] = i + 1 < n ? sextet_char(group >> 6 & 63) : '=';
        out[used++] = i + 2 < n ? sextet_char(group & 63) : '=';
    }
    out[used] = '\0';
    return used;
}

NOINLINE int decode64(const char *in, uint8_t *out)
{
    uint32_t bits = 0;
    int held = 0, used = 0;
    for (; *in != '\0' && *in != '='; in++) {
        int value = sextet_value(*in);
        if (value < 0)
            return -1;
        bits = (bits << 6 | (uint32_t)value) & 0xfff;
        held += 6;
        if (held >= 8) {
            held -= 8;
            out[used++] = (uint8_t)(bits >> held);
        }
    }
    return used;
}

NOINLINE int encode32(const uint8_t *in, int n, char *out)
{
    uint32_t bits = 0;
    int held = 0, used = 0;
    for (int i = 0; i < n; i++) {
        bits = (bits << 8 | in[i]) & 0xfff;
        for (held += 8; held >= 5; held -= 5)
            out[used++] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[bits >> (held - 5) & 31];
    }
    if (held > 0)
        out[used++] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[bits << (5 - held) & 31];
    while (used & 7)
        out[used++] = '=';
    out[used] = '\0';
    return used;
}

NOINLINE char nibble_char(unsigned v) { return (char)(v + '0' + (v > 9) * ('a' - '0' - 10)); }
NOINLINE unsigned nibble_value(char c) { return (unsigned)(c & 15) + ((unsigned)c >> 6) * 9; }

NOINLINE unsigned hex_round_trip(uint8_t byte)
{
    char high = nibble_char(byte >> 4), low = nibble_char(byte & 15);
    return nibble_value(high) << 4 | nibble_value(low);
}

int main(void)
{
    static const char *const texts[] = {"", "f", "fo", "foo", "foob", "fooba", "foobar", "Many hands >>> ~~~"};
    uint8_t data[96], back[96];
    char text[160];
    unsigned errors = 0, sum = 0;

    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        int n = (int)strlen(texts[i]);
        encode64((const uint8_t *)texts[i], n, text);
        printf("'%s' %s ", texts[i], text);
        encode32((const uint8_t *)texts[i], n, text);
        printf("%s\n", text);
    }
    for (int n = 0; n < 96; n++) {
        for (int i = 0; i < n; i++)
            data[i] = (uint8_t)(n * i + (i << 3));
        int length = encode64(data, n, text);
        errors += decode64(text, back) != n || memcmp(data, back, (size_t)n) != 0;
        for (int i = 0; i < length; i++)
            sum = sum * 31 + (uint8_t)text[i];
    }
    for (unsigned byte = 0; byte < 256; byte++)
        errors += hex_round_trip((uint8_t)byte) != byte;
    printf("errors %u sum %08x bad %d\n", errors, sum, decode64("ab*d", back));
    return 0;
}
