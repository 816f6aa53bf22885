/* Bit-field structures: IPv4-like headers, packed instructions, permission flags. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE static __attribute__((noinline))

struct header {
    uint32_t version : 4, length : 4, service : 8, total : 16;
    uint32_t identity : 16, flags : 3, offset : 13;
    uint32_t ttl : 8, protocol : 8, checksum : 16;
};

struct instruction {
    int32_t immediate : 12;
    uint32_t source : 5, function : 3, target : 5, opcode : 7;
};

struct sample {
    int16_t fine : 5, coarse : 6;
    uint16_t channel : 3, valid : 1, last : 1;
};

NOINLINE uint32_t extract(uint32_t word, unsigned at, unsigned width) { return word >> at & ((1u << width) - 1); }

NOINLINE uint32_t insert(uint32_t word, unsigned at, unsigned width, uint32_t value)
{
    uint32_t mask = ((1u << width) - 1) << at;
    return (word & ~mask) | (value << at & mask);
}

NOINLINE int32_t sign_extend(uint32_t value, unsigned width)
{
    uint32_t sign = 1u << (width - 1);
    return (int32_t)((value ^ sign) - sign);
}

NOINLINE struct header make_header(uint32_t x)
{
    struct header h = {.version = 4, .length = 5, .service = x & 0xff, .total = 20 + (x >> 20)};
    h.identity = x & 0xffff;
    h.flags = x >> 5 & 7;
    h.offset = x >> 9 & 0x1fff;
    h.ttl = 64 - (x & 31);
    h.protocol = x & 1 ? 6 : 17;
    return h;
}

NOINLINE uint32_t header_sum(struct header h)
{
    uint32_t sum = h.version << 12 | h.length << 8 | h.service;
    sum += h.total + h.identity + (h.flags << 13 | h.offset) + (h.ttl << 8 | h.protocol);
    sum = (sum & 0xffff) + (sum >> 16);
    return ~(sum + (sum >> 16)) & 0xffff;
}

NOINLINE struct instruction decode(uint32_t word)
{
    struct instruction i = {
        .immediate = sign_extend(extract(word, 20, 12), 12),
        .source = extract(word, 15, 5),
        .function = extract(word, 12, 3),
        .target = extract(word, 7, 5),
        .opcode = extract(word, 0, 7),
    };
    return i;
}

NOINLINE uint32_t encode(struct instruction i)
{
    uint32_t word = insert(i.opcode, 7, 5, i.target);
    word = insert(word, 12, 3, i.function);
    word = insert(word, 15, 5, i.source);
    return insert(word, 20, 12, (uint32_t)i.immediate);
}

NOINLINE int reading(struct sample s) { return s.valid ? s.coarse * 32 + s.fine : -9999; }

NOINLINE void permissions(unsigned mode, char *out)
{
    for (int i = 0; i < 9; i++)
        out[i] = mode >> (8 - i) & 1 ? "rwx"[i % 3] : '-';
    out[9] = '\0';
}

int main(void)
{
    uint32_t x = 0xdeadbeefu, sum = 0, wrong = 0;
    int readings = 0;
    char text[10];

    for (int i = 0; i < 3000; i++) {
        x = x * 22695477u + 1;
        struct header h = make_header(x);
        h.checksum = header_sum(h) & 0xffff;
        struct instruction decoded = decode(x);
        wrong += encode(decoded) != x;
        struct sample s = {.fine = (int16_t)sign_extend(x & 31, 5), .coarse = (int16_t)sign_extend(x >> 8 & 63, 6)};
        s.channel = x >> 13 & 7;
        s.valid = s.channel != 3;
        readings += reading(s);
        sum = sum * 13 + h.checksum + (uint32_t)decoded.immediate + decoded.source * decoded.target;
    }
    printf("wrong %u sum %08x readings %d\n", wrong, sum, readings);
    permissions(0755, text);
    printf("%s ", text);
    permissions(0640, text);
    printf("%s\n", text);
    printf("extend %d %d %d\n", sign_extend(0xfff, 12), sign_extend(0x7ff, 12), sign_extend(0x80, 8));
    return 0;
}
