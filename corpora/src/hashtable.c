/* An open-addressing hash table with robin-hood probing and backward deletion. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))
#define CAPACITY 1024u

struct slot {
    uint32_t key;
    int32_t value;
    uint8_t used;
};

static struct slot table[CAPACITY];
static unsigned population;

NOINLINE uint32_t home_of(uint32_t key)
{
    key ^= key >> 16;
    key *= 0x7feb352du;
    key ^= key >> 15;
    return key & (CAPACITY - 1);
}

NOINLINE uint32_t next_of(uint32_t at) { return (at + 1) & (CAPACITY - 1); }
NOINLINE uint32_t distance(uint32_t at) { return (at - home_of(table[at].key)) & (CAPACITY - 1); }

NOINLINE uint32_t find(uint32_t key)
{
    uint32_t at = home_of(key);
    for (uint32_t walked = 0; table[at].used && walked <= distance(at); walked++) {
        if (table[at].key == key)
            return at;
        at = next_of(at);
    }
    return CAPACITY;
}

NOINLINE void put(uint32_t key, int32_t value)
{
    struct slot carried = {key, value, 1};
    uint32_t at = find(key), walked = 0;
    if (at != CAPACITY) {
        table[at].value = value;
        return;
    }
    for (at = home_of(key); table[at].used; at = next_of(at), walked++) {
        uint32_t rich = distance(at);
        if (rich < walked) {
            struct slot poor = carried;
            carried = table[at];
            table[at] = poor;
            walked = rich;
        }
    }
    table[at] = carried;
    population++;
}

NOINLINE int32_t get(uint32_t key, int32_t otherwise)
{
    uint32_t at = find(key);
    return at == CAPACITY ? otherwise : table[at].value;
}

NOINLINE int erase(uint32_t key)
{
    uint32_t at = find(key);
    if (at == CAPACITY)
        return 0;
    for (uint32_t next = next_of(at); table[next].used && distance(next) != 0; next = next_of(next)) {
        table[at] = table[next];
        at = next;
    }
    table[at].used = 0;
    population--;
    return 1;
}

NOINLINE uint32_t longest_probe(void)
{
    uint32_t longest = 0;
    for (uint32_t at = 0; at < CAPACITY; at++)
        if (table[at].used && distance(at) > longest)
            longest = distance(at);
    return longest;
}

int main(void)
{
    uint32_t erased = 0;
    int64_t sum = 0;

    for (uint32_t i = 0; i < 800; i++)
        put(i * 2654435761u, (int32_t)i - 400);
    printf("population %u longest %u\n", population, longest_probe());
    for (uint32_t i = 0; i < 1000; i += 3)
        erased += (uint32_t)erase(i * 2654435761u);
    for (uint32_t i = 0; i < 200; i++)
        put(i * 5u, get(i * 2654435761u, 1000) * 2);
    for (uint32_t i = 0; i < 1000; i++)
        sum += get(i * 2654435761u, -1) * (int64_t)(i + 1) + get(i, 3);
    printf("erased %u population %u longest %u sum %lld\n", erased, population, longest_probe(), (long long)sum);
    return 0;
}
