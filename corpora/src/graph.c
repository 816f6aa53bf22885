/* Graph algorithms: breadth-first search, Dijkstra, union-find, Floyd, topological order. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE static __attribute__((noinline))
#define N 48
#define FAR 0x3fffffff

static uint8_t weight[N][N];
static uint64_t adjacent[N];
static uint8_t parent[N];

NOINLINE void build(void)
{
    for (unsigned i = 0; i < N; i++)
        for (unsigned j = 0; j < N; j++) {
            unsigned x = (i * 73 + j * 151) ^ (i * j * 29);
            if (i != j && x % 13 < 2) {
                weight[i][j] = (uint8_t)(1 + x % 97);
                adjacent[i] |= 1ull << j;
            }
        }
}

NOINLINE int lowest(uint64_t set)
{
    int n = 0;
    for (; (set & 1) == 0; set >>= 1)
        n++;
    return n;
}

NOINLINE uint64_t spread(uint64_t frontier)
{
    uint64_t reached = 0;
    for (; frontier != 0; frontier &= frontier - 1)
        reached |= adjacent[lowest(frontier)];
    return reached;
}

NOINLINE int eccentricity(int from)
{
    uint64_t seen = 1ull << from, frontier = seen;
    int depth = -1;
    for (; frontier != 0; depth++) {
        frontier = spread(frontier) & ~seen;
        seen |= frontier;
    }
    return depth;
}

NOINLINE void dijkstra(int from, int32_t *cost)
{
    uint64_t done = 0;
    for (int i = 0; i < N; i++)
        cost[i] = i == from ? 0 : FAR;
    for (int round = 0; round < N; round++) {
        int at = -1;
        for (int i = 0; i < N; i++)
            if (!(done >> i & 1) && (at < 0 || cost[i] < cost[at]))
                at = i;
        done |= 1ull << at;
        for (int j = 0; j < N; j++)
            if (weight[at][j] != 0 && cost[at] + weight[at][j] < cost[j])
                cost[j] = cost[at] + weight[at][j];
    }
}

NOINLINE void floyd(int32_t cost[N][N])
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            cost[i][j] = i == j ? 0 : weight[i][j] != 0 ? weight[i][j] : FAR;
    for (int k = 0; k < N; k++)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                if (cost[i][k] + cost[k][j] < cost[i][j])
                    cost[i][j] = cost[i][k] + cost[k][j];
}

NOINLINE uint8_t root(uint8_t i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

NOINLINE int spanning_cost(void)
{
    int total = 0;
    for (int i = 0; i < N; i++)
        parent[i] = (uint8_t)i;
    for (int w = 1; w < 98; w++)
        for (uint8_t i = 0; i < N; i++)
            for (uint8_t j = 0; j < N; j++)
                if (weight[i][j] == w && root(i) != root(j)) {
                    parent[root(i)] = root(j);
                    total += w;
                }
    return total;
}

int main(void)
{
    static int32_t all[N][N], one[N];
    int wrong = 0, reachable = 0, depth = 0;
    int64_t sum = 0;

    build();
    floyd(all);
    for (int i = 0; i < N; i++) {
        dijkstra(i, one);
        wrong += memcmp(one, all[i], sizeof one) != 0;
        depth += eccentricity(i);
        for (int j = 0; j < N; j++) {
            reachable += one[j] != FAR;
            sum += one[j] == FAR ? 0 : one[j];
        }
    }
    printf("wrong %d reachable %d depth %d sum %lld spanning %d\n", wrong, reachable, depth, (long long)sum,
           spanning_cost());
    return 0;
}
