/* A maze carved by a depth-first walk, flood filled and solved breadth first. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE static __attribute__((noinline))
#define W 41
#define H 21

static char grid[H][W + 1];
static uint16_t distance[H][W];
static uint32_t seed = 99;

NOINLINE unsigned random_below(unsigned n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 16) * n >> 16;
}

NOINLINE int dx(unsigned direction) { return (int)(direction & 1) * (1 - (int)(direction & 2)); }
NOINLINE int dy(unsigned direction) { return (int)(~direction & 1) * ((int)(direction & 2) - 1); }
NOINLINE int inside(int x, int y) { return (unsigned)x < W && (unsigned)y < H; }

NOINLINE int can_carve(int x, int y, unsigned d)
{
    int nx = x + 2 * dx(d), ny = y + 2 * dy(d);
    return inside(nx, ny) && grid[ny][nx] == '#';
}

NOINLINE void carve(void)
{
    uint16_t stack[W * H];
    int top = 0, x = 1, y = 1;
    grid[y][x] = ' ';
    for (;;) {
        unsigned d = random_below(4), tried = 0;
        while (tried < 4 && !can_carve(x, y, d)) {
            d = (d + 1) & 3;
            tried++;
        }
        if (tried < 4) {
            stack[top++] = (uint16_t)(y << 8 | x);
            grid[y + dy(d)][x + dx(d)] = ' ';
            x += 2 * dx(d);
            y += 2 * dy(d);
            grid[y][x] = ' ';
        } else if (top > 0) {
            x = stack[--top] & 0xff;
            y = stack[top] >> 8;
        } else {
            return;
        }
    }
}

NOINLINE unsigned flood(int x, int y)
{
    uint16_t queue[W * H];
    unsigned head = 0, tail = 0;
    memset(distance, 0xff, sizeof distance);
    distance[y][x] = 0;
    queue[tail++] = (uint16_t)(y << 8 | x);
    while (head < tail) {
        x = queue[head] & 0xff;
        y = queue[head++] >> 8;
        for (unsigned d = 0; d < 4; d++) {
            int nx = x + dx(d), ny = y + dy(d);
            if (!inside(nx, ny) || grid[ny][nx] == '#' || distance[ny][nx] != 0xffff)
                continue;
            distance[ny][nx] = (uint16_t)(distance[y][x] + 1);
            queue[tail++] = (uint16_t)(ny << 8 | nx);
        }
    }
    return tail;
}

NOINLINE int trace(int x, int y)
{
    int turns = 0;
    unsigned last = 0;
    while (distance[y][x] != 0) {
        grid[y][x] = '.';
        for (unsigned d = 0; d < 4; d++)
            if (inside(x + dx(d), y + dy(d)) && distance[y + dy(d)][x + dx(d)] == distance[y][x] - 1) {
                turns += d != last;
                last = d;
                break;
            }
        x += dx(last);
        y += dy(last);
    }
    grid[y][x] = '.';
    return turns;
}

int main(void)
{
    for (int y = 0; y < H; y++)
        memset(grid[y], '#', W);
    carve();
    unsigned cells = flood(1, 1);
    int turns = trace(W - 2, H - 2);
    for (int y = 0; y < H; y++)
        puts(grid[y]);
    printf("cells %u steps %u turns %d\n", cells, distance[H - 2][W - 2], turns);
    return 0;
}
