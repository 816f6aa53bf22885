/* Dynamic programming: knapsack, coin change, edit distance, subsequences, partitions. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE static __attribute__((noinline))
#define CAPACITY 200
#define LONGEST 40

NOINLINE int max(int a, int b) { return a > b ? a : b; }
NOINLINE int min(int a, int b) { return a < b ? a : b; }
NOINLINE int min3(int a, int b, int c) { return min(min(a, b), c); }

NOINLINE int knapsack(const uint8_t *weight, const uint16_t *value, int n, int capacity)
{
    int best[CAPACITY + 1] = {0};
    for (int i = 0; i < n; i++)
        for (int c = capacity; c >= weight[i]; c--)
            best[c] = max(best[c], best[c - weight[i]] + value[i]);
    return best[capacity];
}

NOINLINE uint32_t coin_ways(const uint8_t *coins, int n, int amount)
{
    uint32_t ways[CAPACITY + 1] = {1};
    for (int i = 0; i < n; i++)
        for (int a = coins[i]; a <= amount; a++)
            ways[a] += ways[a - coins[i]];
    return ways[amount];
}

NOINLINE int fewest_coins(const uint8_t *coins, int n, int amount)
{
    int fewest[CAPACITY + 1] = {0};
    for (int a = 1; a <= amount; a++) {
        fewest[a] = 999;
        for (int i = 0; i < n; i++)
            if (coins[i] <= a)
                fewest[a] = min(fewest[a], 1 + fewest[a - coins[i]]);
    }
    return fewest[amount];
}

NOINLINE int edit_distance(const char *a, const char *b)
{
    int row[LONGEST + 1], n = (int)strlen(b);
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; a[i - 1] != '\0'; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int above = row[j];
            row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[n];
}

NOINLINE int common_subsequence(const char *a, const char *b)
{
    int table[LONGEST + 1][LONGEST + 1] = {{0}};
    int n = (int)strlen(a), m = (int)strlen(b);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
            table[i + 1][j + 1] = a[i] == b[j] ? table[i][j] + 1 : max(table[i][j + 1], table[i + 1][j]);
    return table[n][m];
}

NOINLINE int longest_rising(const int16_t *v, int n)
{
    int16_t tail[64];
    int length = 0;
    for (int i = 0; i < n; i++) {
        int low = 0, high = length;
        while (low < high) {
            int middle = (low + high) / 2;
            if (tail[middle] < v[i])
                low = middle + 1;
            else
                high = middle;
        }
        tail[low] = v[i];
        length += low == length;
    }
    return length;
}

NOINLINE int best_run(const int16_t *v, int n)
{
    int best = v[0], run = 0;
    for (int i = 0; i < n; i++) {
        run = max(run, 0) + v[i];
        best = max(best, run);
    }
    return best;
}

int main(void)
{
    static const uint8_t coins[] = {1, 2, 5, 10, 20, 50, 100, 200}, odd[] = {1, 7, 10};
    uint8_t weight[25];
    uint16_t value[25];
    int16_t series[64];

    for (int i = 0; i < 25; i++) {
        weight[i] = (uint8_t)(5 + i * 7 % 23);
        value[i] = (uint16_t)(10 + i * i % 41);
    }
    for (int i = 0; i < 64; i++)
        series[i] = (int16_t)(i * 37 % 101 - 50);
    for (int c = 0; c <= CAPACITY; c += 50)
        printf("capacity %d best %d ways %u fewest %d\n", c, knapsack(weight, value, 25, c), coin_ways(coins, 8, c),
               fewest_coins(odd, 3, c));
    printf("edit %d %d %d\n", edit_distance("kitten", "sitting"), edit_distance("", "abc"),
           edit_distance("superoptimizer", "peephole optimizer"));
    printf("subsequence %d rising %d run %d\n", common_subsequence("AGGTABQXYZ", "GXTXAYBZQZ"),
           longest_rising(series, 64), best_run(series, 64));
    return 0;
}
