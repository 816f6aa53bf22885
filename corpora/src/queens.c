/* N queens by bit masks, knights on a bitboard, and subsets by Gosper's hack. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE uint32_t queens(uint32_t all, uint32_t columns, uint32_t left, uint32_t right)
{
    uint32_t found = 0, open = all & ~(columns | left | right);
    if (columns == all)
        return 1;
    while (open != 0) {
        uint32_t bit = open & -open;
        open ^= bit;
        found += queens(all, columns | bit, (left | bit) << 1, (right | bit) >> 1);
    }
    return found;
}

NOINLINE uint64_t knight_moves(uint64_t from)
{
    const uint64_t not_a = 0xfefefefefefefefeull, not_ab = 0xfcfcfcfcfcfcfcfcull;
    const uint64_t not_h = 0x7f7f7f7f7f7f7f7full, not_gh = 0x3f3f3f3f3f3f3f3full;
    return (from << 17 & not_a) | (from << 10 & not_ab) | (from >> 6 & not_ab) | (from >> 15 & not_a)
           | (from << 15 & not_h) | (from << 6 & not_gh) | (from >> 10 & not_gh) | (from >> 17 & not_h);
}

NOINLINE int count_bits(uint64_t x)
{
    int n = 0;
    for (; x != 0; x &= x - 1)
        n++;
    return n;
}

NOINLINE int knight_distance(int from, int to)
{
    uint64_t seen = 1ull << from;
    int steps = 0;
    for (; !(seen >> to & 1); steps++)
        seen |= knight_moves(seen);
    return steps;
}

NOINLINE uint64_t rook_moves(int square, uint64_t blockers)
{
    uint64_t moves = 0;
    for (int s = square + 8; s < 64; s += 8) {
        moves |= 1ull << s;
        if (blockers >> s & 1)
            break;
    }
    for (int s = square - 8; s >= 0; s -= 8) {
        moves |= 1ull << s;
        if (blockers >> s & 1)
            break;
    }
    for (int s = square; (s & 7) != 7;) {
        moves |= 1ull << ++s;
        if (blockers >> s & 1)
            break;
    }
    for (int s = square; (s & 7) != 0;) {
        moves |= 1ull << --s;
        if (blockers >> s & 1)
            break;
    }
    return moves;
}

NOINLINE uint32_t next_subset(uint32_t x)
{
    uint32_t low = x & -x, high = x + low;
    return ((high ^ x) / low >> 2) | high;
}

NOINLINE int subset_sums(const uint8_t *values, unsigned n, unsigned size, unsigned target)
{
    int found = 0;
    for (uint32_t set = (1u << size) - 1; set < 1u << n; set = next_subset(set)) {
        unsigned sum = 0;
        for (unsigned i = 0; i < n; i++)
            sum += values[i] & -(set >> i & 1);
        found += sum == target;
    }
    return found;
}

int main(void)
{
    static const uint8_t values[] = {3, 34, 4, 12, 5, 2, 17, 9, 21, 8, 11, 6};
    int moves = 0, farthest = 0, rooks = 0;

    for (unsigned n = 1; n <= 8; n++)
        printf("%u ", queens((1u << n) - 1, 0, 0, 0));
    for (int square = 0; square < 64; square++) {
        moves += count_bits(knight_moves(1ull << square));
        int steps = knight_distance(square, 63 - square);
        farthest = steps > farthest ? steps : farthest;
        rooks += count_bits(rook_moves(square, 0x0042000810002400ull));
    }
    printf("\nmoves %d farthest %d rooks %d\n", moves, farthest, rooks);
    for (unsigned size = 1; size <= 5; size++)
        printf("%d ", subset_sums(values, sizeof values, size, 40));
    printf("\n");
    return 0;
}
