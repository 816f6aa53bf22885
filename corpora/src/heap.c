/* A four-ary heap of packed priorities driving a small event simulation. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))
#define CAPACITY 256

static uint64_t heap[CAPACITY];
static unsigned count;

NOINLINE uint64_t pack(uint32_t time, uint16_t kind, uint16_t payload)
{
    return (uint64_t)time << 32 | (uint32_t)kind << 16 | payload;
}

NOINLINE uint32_t time_of(uint64_t event) { return (uint32_t)(event >> 32); }
NOINLINE uint16_t kind_of(uint64_t event) { return (uint16_t)(event >> 16); }
NOINLINE int16_t payload_of(uint64_t event) { return (int16_t)event; }
NOINLINE unsigned parent_of(unsigned i) { return (i - 1) >> 2; }
NOINLINE unsigned first_child(unsigned i) { return 4 * i + 1; }

NOINLINE int push(uint64_t event)
{
    if (count == CAPACITY)
        return 0;
    unsigned at = count++;
    while (at != 0 && heap[parent_of(at)] > event) {
        heap[at] = heap[parent_of(at)];
        at = parent_of(at);
    }
    heap[at] = event;
    return 1;
}

NOINLINE unsigned smallest_child(unsigned at)
{
    unsigned best = first_child(at), end = best + 4 < count ? best + 4 : count;
    for (unsigned i = best + 1; i < end; i++)
        best = heap[i] < heap[best] ? i : best;
    return best;
}

NOINLINE uint64_t pop(void)
{
    uint64_t top = heap[0], last = heap[--count];
    unsigned at = 0;
    while (first_child(at) < count) {
        unsigned child = smallest_child(at);
        if (heap[child] >= last)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return top;
}

NOINLINE uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    return *state ^= *state << 5;
}

int main(void)
{
    uint32_t state = 77, now = 0, dropped = 0, ordered = 1;
    uint32_t handled[4] = {0};
    int32_t balance = 0;

    for (int i = 0; i < 40; i++)
        push(pack(next_random(&state) % 100, (uint16_t)(i & 3), (uint16_t)(i - 20)));
    for (int step = 0; step < 4000 && count != 0; step++) {
        uint64_t event = pop();
        ordered &= time_of(event) >= now;
        now = time_of(event);
        handled[kind_of(event) & 3]++;
        balance += payload_of(event);
        uint32_t r = next_random(&state);
        if (kind_of(event) != 3 || (r & 7) == 0)
            dropped += !push(pack(now + 1 + r % 50, (uint16_t)(r >> 30), (uint16_t)(r >> 8)));
        if ((r & 15) == 1)
            dropped += !push(pack(now + r % 9, 2, (uint16_t)(r % 11 - 5)));
    }
    printf("now %u left %u dropped %u ordered %u balance %d\n", now, count, dropped, ordered, balance);
    printf("handled %u %u %u %u\n", handled[0], handled[1], handled[2], handled[3]);
    return 0;
}
