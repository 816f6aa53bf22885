/* A treap kept in an array: insertion by rotation, search, order statistics. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))
#define CAPACITY 1024

struct node {
    int32_t key;
    uint32_t priority;
    uint16_t left, right, size;
};

static struct node pool[CAPACITY];
static uint16_t used;

NOINLINE uint32_t priority_of(uint32_t x)
{
    x = (x ^ (x >> 15)) * 0x2c1b3c6du;
    return x ^ (x >> 12);
}

NOINLINE void update(uint16_t at) { pool[at].size = (uint16_t)(1 + pool[pool[at].left].size + pool[pool[at].right].size); }

NOINLINE uint16_t rotate_right(uint16_t at)
{
    uint16_t top = pool[at].left;
    pool[at].left = pool[top].right;
    pool[top].right = at;
    update(at);
    update(top);
    return top;
}

NOINLINE uint16_t rotate_left(uint16_t at)
{
    uint16_t top = pool[at].right;
    pool[at].right = pool[top].left;
    pool[top].left = at;
    update(at);
    update(top);
    return top;
}

NOINLINE uint16_t create(int32_t key)
{
    struct node fresh = {key, priority_of((uint32_t)key), 0, 0, 1};
    pool[++used] = fresh;
    return used;
}

NOINLINE uint16_t insert(uint16_t at, int32_t key)
{
    if (at == 0)
        return create(key);
    if (key == pool[at].key)
        return at;
    if (key < pool[at].key) {
        uint16_t child = insert(pool[at].left, key);
        pool[at].left = child;
        update(at);
        return pool[child].priority > pool[at].priority ? rotate_right(at) : at;
    }
    uint16_t child = insert(pool[at].right, key);
    pool[at].right = child;
    update(at);
    return pool[child].priority > pool[at].priority ? rotate_left(at) : at;
}

NOINLINE int contains(uint16_t at, int32_t key)
{
    while (at != 0 && pool[at].key != key)
        at = key < pool[at].key ? pool[at].left : pool[at].right;
    return at != 0;
}

NOINLINE int32_t select_nth(uint16_t at, unsigned n)
{
    for (;;) {
        unsigned before = pool[pool[at].left].size;
        if (n == before)
            return pool[at].key;
        at = n < before ? pool[at].left : pool[at].right;
        n = n < before ? n : n - before - 1;
    }
}

NOINLINE int height(uint16_t at)
{
    if (at == 0)
        return 0;
    int left = height(pool[at].left), right = height(pool[at].right);
    return 1 + (left > right ? left : right);
}

int main(void)
{
    uint16_t root = 0;
    int found = 0, ordered = 1;
    int64_t sum = 0;

    for (int32_t i = 0; i < 900; i++)
        root = insert(root, i * 7919 % 2003 - 1000);
    for (int32_t key = -1100; key < 1100; key++)
        found += contains(root, key);
    for (unsigned n = 0; n < pool[root].size; n++) {
        int32_t key = select_nth(root, n);
        ordered &= n == 0 || select_nth(root, n - 1) < key;
        sum += (int64_t)key * (n + 1);
    }
    printf("size %u found %d ordered %d sum %lld\n", pool[root].size, found, ordered, (long long)sum);
    printf("balanced %d first %d last %d median %d\n", height(root) < 40, select_nth(root, 0),
           select_nth(root, pool[root].size - 1u), select_nth(root, pool[root].size / 2u));
    return 0;
}
