/* Numbers of two and four words: sums, differences, shifts, products, comparisons. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE uint64_t add_high(uint64_t ah, uint64_t al, uint64_t bh, uint64_t bl) { return ah + bh + (al + bl < al); }
NOINLINE uint64_t sub_high(uint64_t ah, uint64_t al, uint64_t bh, uint64_t bl) { return ah - bh - (al < bl); }
NOINLINE uint64_t neg_high(uint64_t h, uint64_t l) { return ~h + (l == 0); }
NOINLINE uint64_t dec_high(uint64_t h, uint64_t l) { return h - !l; }
NOINLINE uint64_t half_low(uint64_t h, uint64_t l) { return l >> 1 | h << 63; }
NOINLINE uint64_t left_high(uint64_t h, uint64_t l, unsigned n) { return h << n | l >> 1 >> (63 - n); }
NOINLINE uint64_t right_low(uint64_t h, uint64_t l, unsigned n) { return l >> n | h << 1 << (63 - n); }
NOINLINE uint64_t right12_low(int64_t h, uint64_t l) { return (uint64_t)h << 52 | l >> 12; }
NOINLINE int below(uint64_t ah, uint64_t al, uint64_t bh, uint64_t bl) { return ah < bh || (ah == bh && al < bl); }
NOINLINE int less(int64_t ah, uint64_t al, int64_t bh, uint64_t bl) { return ah < bh || (ah == bh && al < bl); }
NOINLINE int same(uint64_t ah, uint64_t al, uint64_t bh, uint64_t bl) { return ((ah ^ bh) | (al ^ bl)) == 0; }
NOINLINE int sign(int64_t h, uint64_t l) { return h < 0 ? -1 : (h | (int64_t)l) != 0; }

NOINLINE int order(uint64_t ah, uint64_t al, uint64_t bh, uint64_t bl)
{
    int high = (ah > bh) - (ah < bh), low = (al > bl) - (al < bl);
    return high != 0 ? high : low;
}

NOINLINE uint64_t magnitude_low(int64_t h, uint64_t l)
{
    uint64_t mask = (uint64_t)(h >> 63);
    return (l ^ mask) - mask;
}

NOINLINE uint32_t high16(uint32_t a, uint32_t b)
{
    uint32_t al = a & 0xffff, ah = a >> 16, bl = b & 0xffff, bh = b >> 16;
    uint32_t low = al * bl, middle = ah * bl + (low >> 16);
    uint32_t other = al * bh + (middle & 0xffff);
    return ah * bh + (middle >> 16) + (other >> 16);
}

NOINLINE uint64_t high32(uint64_t a, uint64_t b)
{
    uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    uint64_t middle = ah * bl + (al * bl >> 32);
    uint64_t other = al * bh + (uint32_t)middle;
    return ah * bh + (middle >> 32) + (other >> 32);
}

NOINLINE int64_t signed_high(int64_t a, int64_t b, uint64_t high)
{
    return (int64_t)(high - ((uint64_t)(a >> 63) & (uint64_t)b) - ((uint64_t)(b >> 63) & (uint64_t)a));
}

NOINLINE uint32_t high_of_product(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); }
NOINLINE int32_t high_of_signed(int32_t a, int32_t b) { return (int32_t)((int64_t)a * b >> 32); }
NOINLINE uint16_t high_of_words(uint16_t a, uint16_t b) { return (uint16_t)((uint32_t)a * b >> 16); }
NOINLINE uint64_t carry_out(uint64_t a, uint64_t b, uint64_t c) { return ((a & b) | ((a | b) & ~(a + b + c))) >> 63; }
NOINLINE uint64_t borrow_out(uint64_t a, uint64_t b, uint64_t c) { return ((~a & b) | (~(a ^ b) & (a - b - c))) >> 63; }
NOINLINE uint8_t carry8(uint8_t a, uint8_t b, uint8_t c) { return (uint8_t)((a + b + c) >> 8); }
NOINLINE uint16_t borrow16(uint16_t a, uint16_t b, uint16_t c) { return (uint16_t)((a - b - c) >> 16 & 1); }
NOINLINE uint64_t column(uint32_t a, uint32_t b, uint32_t sum, uint32_t carry) { return (uint64_t)a * b + sum + carry; }

typedef unsigned __int128 wide;

static uint64_t seed = 7, digest;

NOINLINE uint64_t draw(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    uint64_t value = seed ^ seed >> 31;
    return value >> 60 == 0 ? 0 : value >> 60 == 1 ? ~0ull : value >> 60 == 2 ? 1ull << 63 : value;
}

NOINLINE void mix(uint64_t value) { digest = (digest ^ value) * 0x100000001b3u; }

int main(void)
{
    unsigned wrong = 0;
    for (int i = 0; i < 2000; i++) {
        uint64_t ah = draw(), al = draw(), bh = draw(), bl = draw();
        unsigned n = i & 63;
        wide a = (wide)ah << 64 | al, b = (wide)bh << 64 | bl;
        wrong += add_high(ah, al, bh, bl) != (uint64_t)((a + b) >> 64);
        wrong += sub_high(ah, al, bh, bl) != (uint64_t)((a - b) >> 64);
        wrong += neg_high(ah, al) != (uint64_t)(-a >> 64);
        wrong += dec_high(ah, al) != (uint64_t)((a - 1) >> 64);
        wrong += half_low(ah, al) != (uint64_t)(a >> 1) || left_high(ah, al, n) != (uint64_t)(a << n >> 64);
        wrong += right_low(ah, al, n) != (uint64_t)(a >> n);
        wrong += below(ah, al, bh, bl) != (a < b) || same(ah, al, bh, bl) != (a == b);
        wrong += less((int64_t)ah, al, (int64_t)bh, bl) != ((__int128)a < (__int128)b);
        wrong += order(ah, al, bh, bl) != (a > b) - (a < b);
        wrong += high32(al, bl) != (uint64_t)((wide)al * bl >> 64);
        wrong += high16((uint32_t)al, (uint32_t)bl) != high_of_product((uint32_t)al, (uint32_t)bl);
        wrong += carry_out(al, bl, n & 1) != (uint64_t)(((wide)al + bl + (n & 1)) >> 64);
        wrong += borrow_out(al, bl, n & 1) != (uint64_t)(((wide)al - bl - (n & 1)) >> 64 & 1);
        mix(right12_low((int64_t)ah, al) ^ magnitude_low((int64_t)ah, al));
        mix((uint64_t)sign((int64_t)ah, al) ^ (uint64_t)signed_high((int64_t)ah, (int64_t)bh, high32(ah, bh)));
        mix((uint64_t)high_of_signed((int32_t)ah, (int32_t)bl) + high_of_words((uint16_t)ah, (uint16_t)bl));
        mix(carry8((uint8_t)ah, (uint8_t)bl, n & 1) * 2);
        mix(borrow16((uint16_t)ah, (uint16_t)bl, n & 1));
        mix(column((uint32_t)ah, (uint32_t)bl, (uint32_t)al, (uint32_t)bh));
    }
    printf("wrong %u digest %016llx\n", wrong, (unsigned long long)digest);
    return 0;
}
