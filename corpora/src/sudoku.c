/* A sudoku solver that keeps candidate sets in bit masks. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))
#define ALL 0x1ffu

static uint8_t cell[81];
static uint16_t row_used[9], column_used[9], box_used[9];
static unsigned visits;

NOINLINE int row_of(int at) { return at / 9; }
NOINLINE int column_of(int at) { return at % 9; }
NOINLINE int box_of(int at) { return at / 27 * 3 + at % 9 / 3; }

NOINLINE uint16_t candidates(int at)
{
    return (uint16_t)(ALL & ~(row_used[row_of(at)] | column_used[column_of(at)] | box_used[box_of(at)]));
}

NOINLINE void toggle(int at, uint16_t bit)
{
    row_used[row_of(at)] ^= bit;
    column_used[column_of(at)] ^= bit;
    box_used[box_of(at)] ^= bit;
}

NOINLINE int count(uint16_t x)
{
    int n = 0;
    for (; x != 0; x = (uint16_t)(x & (x - 1)))
        n++;
    return n;
}

NOINLINE uint8_t digit_of(uint16_t bit)
{
    uint8_t n = 1;
    while ((bit >>= 1) != 0)
        n++;
    return n;
}

NOINLINE int most_constrained(void)
{
    int best = -1, fewest = 10;
    for (int at = 0; at < 81; at++) {
        if (cell[at] != 0)
            continue;
        int n = count(candidates(at));
        if (n < fewest) {
            fewest = n;
            best = at;
        }
    }
    return best;
}

NOINLINE int solve(void)
{
    int at = most_constrained();
    visits++;
    if (at < 0)
        return 1;
    for (uint16_t open = candidates(at); open != 0; open = (uint16_t)(open & (open - 1))) {
        uint16_t bit = (uint16_t)(open & -open);
        toggle(at, bit);
        cell[at] = digit_of(bit);
        if (solve())
            return 1;
        cell[at] = 0;
        toggle(at, bit);
    }
    return 0;
}

NOINLINE void load(const char *text)
{
    for (int i = 0; i < 9; i++)
        row_used[i] = column_used[i] = box_used[i] = 0;
    for (int at = 0; at < 81; at++) {
        cell[at] = text[at] == '.' ? 0 : (uint8_t)(text[at] - '0');
        if (cell[at] != 0)
            toggle(at, (uint16_t)(1u << (cell[at] - 1)));
    }
    visits = 0;
}

/* A puzzle made from the cyclic grid: one cell in three stays, chosen by a mixed index. */
NOINLINE void make_puzzle(char *out, unsigned seed)
{
    for (unsigned at = 0; at < 81; at++) {
        unsigned r = at / 9, c = at % 9;
        unsigned mixed = (at * 2654435761u ^ seed * 40503u) >> 7;
        out[at] = mixed % 3 == 0 ? (char)('1' + (r % 3 * 3 + r / 3 + c + seed) % 9) : '.';
    }
}

int main(void)
{
    char text[81];

    for (unsigned seed = 1; seed <= 6; seed++) {
        make_puzzle(text, seed);
        load(text);
        int solved = solve(), full = 1;
        uint32_t sum = 0;
        for (int i = 0; i < 9; i++)
            full &= row_used[i] == ALL && column_used[i] == ALL && box_used[i] == ALL;
        for (int at = 0; at < 81; at++)
            sum = sum * 11 + cell[at];
        printf("seed %u solved %d full %d visits %u sum %08x\n", seed, solved, full, visits, sum);
    }
    for (int at = 0; at < 81; at++)
        printf("%d%c", cell[at], at % 9 == 8 ? '\n' : ' ');
    return 0;
}
