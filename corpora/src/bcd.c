/* Packed decimal arithmetic: conversion by double dabble, addition, subtraction, shifts. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE uint32_t to_bcd(uint32_t x)
{
    uint32_t result = 0;
    for (int shift = 0; shift < 32; shift += 4) {
        result |= x % 10 << shift;
        x /= 10;
    }
    return result;
}

NOINLINE uint32_t from_bcd(uint32_t bcd)
{
    uint32_t result = 0;
    for (int shift = 28; shift >= 0; shift -= 4)
        result = result * 10 + (bcd >> shift & 15);
    return result;
}

NOINLINE uint32_t double_dabble(uint16_t x)
{
    uint32_t bcd = 0;
    for (int bit = 15; bit >= 0; bit--) {
        uint32_t large = (bcd + 0x33333333u) & 0x88888888u;
        bcd += large >> 2 | large >> 3;
        bcd = bcd << 1 | (x >> bit & 1);
    }
    return bcd;
}

NOINLINE uint32_t add(uint32_t a, uint32_t b)
{
    uint64_t sum = (uint64_t)a + 0x66666666u + b;
    uint64_t carries = (sum ^ a ^ 0x66666666u ^ b) & 0x111111110ull;
    uint64_t missing = ~carries & 0x111111110ull;
    return (uint32_t)(sum - (missing >> 2 | missing >> 3));
}

NOINLINE uint32_t nines_complement(uint32_t a) { return 0x99999999u - a; }
NOINLINE uint32_t subtract(uint32_t a, uint32_t b) { return add(add(a, nines_complement(b)), 1); }

NOINLINE int is_valid(uint32_t a) { return (((a + 0x06666666u) ^ a) & 0x11111110u) == 0 && a >> 28 < 10; }

NOINLINE uint32_t multiply_digit(uint32_t a, unsigned digit)
{
    uint32_t total = 0;
    while (digit-- != 0)
        total = add(total, a);
    return total;
}

NOINLINE uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t total = 0;
    for (int shift = 28; shift >= 0; shift -= 4)
        total = add(total << 4, multiply_digit(a, b >> shift & 15));
    return total;
}

NOINLINE uint8_t increment_clock(uint8_t field, uint8_t limit, int *carry)
{
    unsigned next = field + (unsigned)*carry;
    next += (next & 15) == 10 ? 6 : 0;
    *carry = next == limit;
    return (uint8_t)(*carry ? 0 : next);
}

int main(void)
{
    uint32_t wrong = 0, invalid = 0, sum = 0, x = 1;
    uint8_t hour = 0x23, minute = 0x58, second = 0x55;

    for (int i = 0; i < 2500; i++) {
        x = x * 69069u + 1;
        uint32_t a = (x >> 4) % 50000000, b = (x >> 9) % 40000000;
        wrong += from_bcd(to_bcd(a)) != a;
        wrong += add(to_bcd(a), to_bcd(b)) != to_bcd(a + b);
        wrong += subtract(to_bcd(a), to_bcd(b)) != to_bcd((a + 100000000 - b) % 100000000);
        wrong += multiply(to_bcd(a % 9999), to_bcd(b % 9999)) != to_bcd(a % 9999 * (b % 9999));
        wrong += double_dabble((uint16_t)x) != to_bcd(x & 0xffff);
        invalid += (uint32_t)!is_valid(x);
        sum = sum * 3 + to_bcd(a ^ b);
    }
    printf("wrong %u invalid %u sum %08x\n", wrong, invalid, sum);
    for (int i = 0; i < 130; i++) {
        int carry = 1;
        second = increment_clock(second, 0x60, &carry);
        minute = increment_clock(minute, 0x60, &carry);
        hour = increment_clock(hour, 0x24, &carry);
    }
    printf("clock %02x:%02x:%02x dabble %x\n", hour, minute, second, double_dabble(65535));
    return 0;
}
