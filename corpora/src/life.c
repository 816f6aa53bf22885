/* Conway's game of life on a 64-bit-wide torus with bit-sliced neighbour counts. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))
#define ROWS 24

NOINLINE uint64_t west(uint64_t row) { return row << 1 | row >> 63; }
NOINLINE uint64_t east(uint64_t row) { return row >> 1 | row << 63; }
NOINLINE uint64_t majority(uint64_t a, uint64_t b, uint64_t c) { return (a & b) | (c & (a ^ b)); }

NOINLINE uint64_t next_row(uint64_t above, uint64_t row, uint64_t below)
{
    uint64_t a0 = west(above) ^ above ^ east(above), a1 = majority(west(above), above, east(above));
    uint64_t b0 = west(below) ^ below ^ east(below), b1 = majority(west(below), below, east(below));
    uint64_t c0 = west(row) ^ east(row), c1 = west(row) & east(row);
    uint64_t ones = a0 ^ b0 ^ c0, carry = majority(a0, b0, c0);
    uint64_t twos = a1 ^ b1 ^ c1 ^ carry;
    uint64_t fours = majority(a1, b1, c1) | ((a1 ^ b1 ^ c1) & carry);
    return twos & ~fours & (ones | row);
}

NOINLINE void advance(uint64_t *world)
{
    uint64_t next[ROWS];
    for (int i = 0; i < ROWS; i++)
        next[i] = next_row(world[(i + ROWS - 1) % ROWS], world[i], world[(i + 1) % ROWS]);
    for (int i = 0; i < ROWS; i++)
        world[i] = next[i];
}

NOINLINE int population(const uint64_t *world)
{
    int total = 0;
    for (int i = 0; i < ROWS; i++)
        for (uint64_t row = world[i]; row != 0; row &= row - 1)
            total++;
    return total;
}

NOINLINE uint64_t digest(const uint64_t *world)
{
    uint64_t h = 0;
    for (int i = 0; i < ROWS; i++)
        h = (h ^ world[i]) * 0x100000001b3ull;
    return h;
}

NOINLINE void draw(const uint64_t *world, int rows)
{
    for (int i = 0; i < rows; i++) {
        for (int bit = 0; bit < 48; bit++)
            putchar(world[i] >> bit & 1 ? '#' : '.');
        putchar('\n');
    }
}

/* Elementary automaton by rule number, one row at a time. */
NOINLINE uint64_t elementary(uint64_t row, uint8_t rule)
{
    uint64_t next = 0, left = west(row), right = east(row);
    for (int i = 0; i < 64; i++) {
        unsigned index = (unsigned)((right >> i & 1) << 2 | (row >> i & 1) << 1 | (left >> i & 1));
        next |= (uint64_t)(rule >> index & 1) << i;
    }
    return next;
}

int main(void)
{
    uint64_t world[ROWS] = {0}, row = 1ull << 24;

    world[1] = 2;
    world[2] = 4;
    world[3] = 7;
    world[10] = 0x2000000;
    world[11] = 0x8000000;
    world[12] = 0x73000000;
    for (int generation = 0; generation <= 120; generation++) {
        if (generation % 40 == 0)
            printf("%d: %d %016llx\n", generation, population(world), (unsigned long long)digest(world));
        advance(world);
    }
    draw(world, 6);
    for (int i = 0; i < 8; i++) {
        draw(&row, 1);
        row = elementary(row, i < 4 ? 90 : 110);
    }
    return 0;
}
