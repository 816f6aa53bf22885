/* Cellular automata on a ring of 64 cells, chess moves on a board of 64 squares, shift registers. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE uint64_t west(uint64_t x) { return x << 1 | x >> 63; }
NOINLINE uint64_t east(uint64_t x) { return x >> 1 | x << 63; }
NOINLINE uint64_t rule30(uint64_t x) { return east(x) ^ (x | west(x)); }
NOINLINE uint64_t rule54(uint64_t l, uint64_t c, uint64_t r) { return (l | r) ^ c; }
NOINLINE uint64_t rule60(uint64_t l, uint64_t c) { return l ^ c; }
NOINLINE uint64_t rule90(uint64_t x) { return (x << 1) ^ (x >> 1); }
NOINLINE uint64_t rule110(uint64_t l, uint64_t c, uint64_t r) { return (c | r) & ~(l & c & r); }
NOINLINE uint64_t rule150(uint64_t x) { return x ^ (x << 1) ^ (x >> 1); }
NOINLINE uint64_t rule184(uint64_t l, uint64_t c, uint64_t r) { return (c & r) | (l & ~c); }
NOINLINE uint64_t majority(uint64_t l, uint64_t c, uint64_t r) { return (l & c) | (c & r) | (l & r); }
NOINLINE uint64_t exactly_one(uint64_t a, uint64_t b, uint64_t c) { return (a ^ b ^ c) & ~(a & b & c); }
NOINLINE uint32_t apply_rule(uint32_t x, uint8_t rule)
{
    uint32_t l = x >> 1, r = x << 1, next = 0;
    for (unsigned k = 0; k < 8; k++) {
        uint32_t hit = (k & 4 ? l : ~l) & (k & 2 ? x : ~x) & (k & 1 ? r : ~r);
        next |= hit & (uint32_t)-(rule >> k & 1);
    }
    return next;
}

NOINLINE uint64_t square(unsigned file, unsigned rank) { return 1ull << (rank * 8 + file); }
NOINLINE uint64_t north(uint64_t b) { return b << 8; }
NOINLINE uint64_t south(uint64_t b) { return b >> 8; }
NOINLINE uint64_t right(uint64_t b) { return b << 1 & 0xfefefefefefefefeu; }
NOINLINE uint64_t left(uint64_t b) { return b >> 1 & 0x7f7f7f7f7f7f7f7fu; }
NOINLINE uint64_t north_east(uint64_t b) { return (b & 0x7f7f7f7f7f7f7f7fu) << 9; }
NOINLINE uint64_t pawn_takes(uint64_t b) { return (b << 7 & 0x7f7f7f7f7f7f7f7fu) | (b << 9 & 0xfefefefefefefefeu); }
NOINLINE uint64_t pawn_pushes(uint64_t b, uint64_t empty) { return b << 8 & empty; }
NOINLINE uint64_t double_pushes(uint64_t single, uint64_t empty) { return single << 8 & empty & 0xff000000u; }

NOINLINE uint64_t knight(uint64_t b)
{
    uint64_t near = (b << 1 & 0xfefefefefefefefeu) | (b >> 1 & 0x7f7f7f7f7f7f7f7fu);
    uint64_t far = (b << 2 & 0xfcfcfcfcfcfcfcfcu) | (b >> 2 & 0x3f3f3f3f3f3f3f3fu);
    return near << 16 | near >> 16 | far << 8 | far >> 8;
}

NOINLINE uint64_t king(uint64_t b)
{
    uint64_t row = b | right(b) | left(b);
    return (row | row << 8 | row >> 8) ^ b;
}

NOINLINE uint64_t fill_north(uint64_t b, uint64_t empty)
{
    b |= empty & b << 8;
    empty &= empty << 8;
    b |= empty & b << 16;
    empty &= empty << 16;
    return b | (empty & b << 32);
}

NOINLINE uint64_t slide_up(uint64_t occupied, uint64_t piece) { return (occupied - 2 * piece) ^ occupied; }
NOINLINE uint64_t file_of(unsigned s) { return 0x0101010101010101u << (s & 7); }
NOINLINE uint64_t rank_of(unsigned s) { return 0xffull << (s & 56); }
NOINLINE unsigned mirror(unsigned s) { return s ^ 56; }
NOINLINE unsigned quarter_turn(unsigned s) { return ((s >> 3 | s << 3) & 63) ^ 56; }
NOINLINE int same_diagonal(int a, int b) { return (a >> 3) - (a & 7) == (b >> 3) - (b & 7); }
NOINLINE int is_dark(unsigned s) { return (s >> 3 ^ s ^ 1) & 1; }
NOINLINE int several(uint64_t b) { return (b & (b - 1)) != 0; }

NOINLINE uint16_t fibonacci_step(uint16_t x) { return (uint16_t)(x >> 1 | (x ^ x >> 2 ^ x >> 3 ^ x >> 5) << 15); }
NOINLINE uint16_t galois_step(uint16_t x) { return (uint16_t)(x >> 1 ^ (-(x & 1) & 0xb400)); }
NOINLINE uint32_t galois_left(uint32_t x) { return x << 1 ^ ((uint32_t)((int32_t)x >> 31) & 0x04c11db7u); }

static uint64_t digest;

NOINLINE void mix(uint64_t value) { digest = (digest ^ value) * 0x100000001b3u + 1; }

int main(void)
{
    uint64_t x = 1ull << 31, y = 0x123456789abcdefu, moves = 0;
    uint16_t one = 1, two = 1, period = 0;
    for (unsigned s = 0; s < 64; s++) {
        uint64_t b = square(s & 7, s >> 3), l = west(x), r = east(x);
        y = rule90(y) ^ rule60(x, y >> 3);
        mix(rule54(l, x, r) + rule110(l, x, r) + rule184(l, x, r) + rule150(y));
        mix(majority(l, y, r) - exactly_one(l, y, r) + apply_rule((uint32_t)y, (uint8_t)(s * 3)));
        mix(knight(b) ^ king(b) ^ pawn_takes(b) ^ double_pushes(pawn_pushes(b, ~y), ~y));
        mix(fill_north(b, ~y) ^ slide_up(y, b) ^ (file_of(s) & rank_of(quarter_turn(s))));
        mix(north(b) + south(b) + north_east(b) + mirror(s) + (unsigned)is_dark(s) + galois_left((uint32_t)y));
        for (uint64_t to = knight(b); to != 0; to &= to - 1)
            moves += 1 + (uint64_t)several(to) * 1000;
        mix((uint64_t)same_diagonal((int)s, 27));
        x = rule30(x);
    }
    do {
        one = fibonacci_step(one);
        two = galois_step(two);
    } while (++period != 0 && two != 1);
    printf("row %016llx moves %llu period %u %04x ", (unsigned long long)x, (unsigned long long)moves, period, one);
    printf("digest %016llx\n", (unsigned long long)digest);
    return 0;
}
