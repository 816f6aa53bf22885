/* A byte ring buffer with free-running indices, framing, and a moving average filter. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))
#define SIZE 64u

struct ring {
    uint8_t data[SIZE];
    uint8_t head, tail;
};

struct window {
    int16_t sample[8];
    int32_t total;
    uint8_t at;
};

NOINLINE unsigned used(const struct ring *r) { return (uint8_t)(r->head - r->tail); }
NOINLINE unsigned available(const struct ring *r) { return SIZE - used(r); }

NOINLINE int put(struct ring *r, uint8_t byte)
{
    if (available(r) == 0)
        return 0;
    r->data[r->head++ & (SIZE - 1)] = byte;
    return 1;
}

NOINLINE int get(struct ring *r)
{
    return used(r) == 0 ? -1 : r->data[r->tail++ & (SIZE - 1)];
}

NOINLINE int peek(const struct ring *r, unsigned ahead)
{
    return ahead < used(r) ? r->data[(r->tail + ahead) & (SIZE - 1)] : -1;
}

NOINLINE int send_frame(struct ring *r, const uint8_t *payload, unsigned length)
{
    uint8_t check = (uint8_t)length;
    if (available(r) < length + 3)
        return 0;
    put(r, 0x7e);
    put(r, (uint8_t)length);
    for (unsigned i = 0; i < length; i++) {
        check = (uint8_t)((check << 1 | check >> 7) ^ payload[i]);
        put(r, payload[i]);
    }
    return put(r, check);
}

NOINLINE int receive_frame(struct ring *r, uint8_t *payload)
{
    while (peek(r, 0) >= 0 && peek(r, 0) != 0x7e)
        get(r);
    int length = peek(r, 1);
    if (length < 0 || peek(r, (unsigned)length + 2) < 0)
        return -1;
    uint8_t check = (uint8_t)length;
    get(r);
    get(r);
    for (int i = 0; i < length; i++) {
        payload[i] = (uint8_t)get(r);
        check = (uint8_t)((check << 1 | check >> 7) ^ payload[i]);
    }
    return get(r) == check ? length : -2;
}

NOINLINE int16_t average(struct window *w, int16_t sample)
{
    w->total += sample - w->sample[w->at];
    w->sample[w->at] = sample;
    w->at = (w->at + 1) & 7;
    return (int16_t)(w->total / 8);
}

int main(void)
{
    struct ring ring = {.head = 250, .tail = 250};
    struct window window = {.at = 0};
    uint8_t payload[SIZE], received[256];
    unsigned sent = 0, refused = 0, good = 0, damaged = 0;
    uint32_t sum = 0;

    for (unsigned i = 0; i < 1500; i++) {
        unsigned length = 1 + i * 7 % 19;
        for (unsigned j = 0; j < length; j++)
            payload[j] = (uint8_t)(i * j + 3);
        if (send_frame(&ring, payload, length))
            sent++;
        else
            refused++;
        if (i % 31 == 0)
            ring.data[(ring.head - 2u) & (SIZE - 1)] ^= 0x10;
        if (i % 3 == 0)
            continue;
        int n = receive_frame(&ring, received);
        good += n > 0;
        damaged += n == -2;
        for (int j = 0; j < n; j++)
            sum = sum * 31 + received[j] + (uint32_t)average(&window, (int16_t)(received[j] * 256 - 32768));
    }
    printf("sent %u refused %u good %u damaged %u\n", sent, refused, good, damaged);
    printf("used %u sum %08x window %d\n", used(&ring), sum, window.total);
    return 0;
}
