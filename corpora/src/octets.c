/* Network arithmetic on integers: prefixes, ranges, address classes, hardware addresses, header fields. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE uint32_t address(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
    return (uint32_t)a << 24 | (uint32_t)b << 16 | (uint32_t)c << 8 | d;
}
NOINLINE uint8_t octet(uint32_t ip, unsigned n) { return (uint8_t)(ip >> (24 - 8 * n)); }
NOINLINE uint32_t netmask(unsigned length) { return length == 0 ? 0 : ~0u << (32 - length); }
NOINLINE uint32_t hostmask(unsigned length) { return (uint32_t)(0xffffffffull >> length); }
NOINLINE uint32_t network(uint32_t ip, uint32_t mask) { return ip & mask; }
NOINLINE uint32_t broadcast(uint32_t ip, uint32_t mask) { return ip | ~mask; }
NOINLINE uint32_t first_host(uint32_t ip, uint32_t mask) { return (ip & mask) + 1; }
NOINLINE uint32_t last_host(uint32_t ip, uint32_t mask) { return (ip | ~mask) - 1; }
NOINLINE uint32_t hosts(unsigned length) { return length >= 31 ? 33 - length : (1u << (32 - length)) - 2; }
NOINLINE int same_network(uint32_t a, uint32_t b, uint32_t mask) { return ((a ^ b) & mask) == 0; }
NOINLINE int contains(uint32_t net, unsigned length, uint32_t ip) { return (uint64_t)(net ^ ip) >> (32 - length) == 0; }
NOINLINE int is_netmask(uint32_t mask) { return (~mask & (~mask + 1)) == 0; }
NOINLINE unsigned prefix_length(uint32_t mask)
{
    unsigned n = 0;
    for (; mask != 0; mask <<= 1)
        n++;
    return n;
}
NOINLINE unsigned common_prefix(uint32_t a, uint32_t b) { return a == b ? 32 : (unsigned)__builtin_clz(a ^ b); }
NOINLINE uint32_t sibling(uint32_t net, unsigned length) { return net ^ 1u << (32 - length); }
NOINLINE uint32_t next_network(uint32_t net, unsigned length) { return net + (1u << (32 - length)); }
NOINLINE int is_multicast(uint32_t ip) { return (ip & 0xf0000000u) == 0xe0000000u; }
NOINLINE int is_private(uint32_t ip) { return ip >> 24 == 10 || ip >> 20 == 0xac1 || ip >> 16 == 0xc0a8; }
NOINLINE int is_shared(uint32_t ip) { return ip - 0x64400000u < 0x400000; }
NOINLINE char class_of(uint32_t ip) { return (char)('A' + (ip >= 1u << 31) + (ip >= 3u << 30) + (ip >= 7u << 29)); }
NOINLINE uint32_t swap32(uint32_t x) { return x << 24 | (x & 0xff00) << 8 | (x >> 8 & 0xff00) | x >> 24; }
NOINLINE uint64_t swap48(uint64_t x) { return __builtin_bswap64(x) >> 16; }
NOINLINE int is_group(uint64_t mac) { return mac >> 40 & 1; }
NOINLINE int is_local(uint64_t mac) { return (mac & 0x020000000000u) != 0; }
NOINLINE uint32_t vendor(uint64_t mac) { return (uint32_t)(mac >> 24) & 0xffffff; }
NOINLINE uint64_t interface_id(uint64_t mac)
{
    return ((mac & 0xffffff000000u) << 16 | 0xfffe000000u | (mac & 0xffffff)) ^ 0x0200000000000000u;
}
NOINLINE uint64_t multicast_mac(uint32_t ip) { return 0x01005e000000u | (ip & 0x7fffff); }
NOINLINE unsigned header_bytes(uint8_t first) { return (first & 15u) * 4; }
NOINLINE uint16_t fragment_offset(uint16_t field) { return (uint16_t)(field << 3); }
NOINLINE uint8_t mark_congestion(uint8_t tos) { return (tos & 3) != 0 ? tos | 3 : tos; }
NOINLINE int sequence_before(uint32_t a, uint32_t b) { return (int32_t)(a - b) < 0; }
NOINLINE int in_window(uint32_t s, uint32_t start, uint16_t size) { return s - start < size; }
NOINLINE uint16_t set_priority(uint16_t tag, unsigned p) { return (uint16_t)((tag & 0x1fff) | p << 13); }

static uint64_t digest;

NOINLINE void mix(uint64_t value) { digest = (digest ^ value) * 0x100000001b3u + 1; }

int main(void)
{
    uint32_t x = 77, wrong = 0;
    for (unsigned i = 0; i < 1500; i++) {
        x = x * 1664525u + 1013904223u;
        unsigned n = 1 + i % 31;
        uint32_t ip = x ^ x >> 15, mask = netmask(n), net = network(ip, mask), other = ip ^ (x >> n);
        uint64_t mac = (uint64_t)x << 16 ^ ip;
        wrong += mask != ~hostmask(n) || prefix_length(mask) != n || !is_netmask(mask) || !contains(net, n, ip);
        wrong += address(octet(ip, 0), octet(ip, 1), octet(ip, 2), octet(ip, 3)) != ip || swap32(swap32(ip)) != ip;
        wrong += same_network(ip, other, mask) != (common_prefix(ip, other) >= n);
        mix(broadcast(ip, mask) ^ first_host(ip, mask) ^ last_host(other, mask) ^ hosts(n) ^ sibling(net, n));
        mix(next_network(net, n) + (uint32_t)(2 * is_multicast(ip)));
        mix((uint64_t)(is_private(ip) + 2 * is_shared(ip) + 4 * class_of(ip)) + swap48(mac));
        mix((uint64_t)(is_group(mac) + 2 * is_local(mac)) + vendor(mac) + interface_id(mac) + multicast_mac(ip));
        mix(header_bytes((uint8_t)ip) + fragment_offset((uint16_t)ip));
        mix(mark_congestion((uint8_t)x));
        mix((uint64_t)(sequence_before(ip, other) + 2 * in_window(ip, net, 1460)));
        mix(set_priority((uint16_t)ip, i & 7));
    }
    printf("private %d%d%d ", is_private(0x0a000001), is_private(0xac1fffff), is_private(0xac200000));
    printf("class %c wrong %u digest %016llx\n", class_of(0xc0a80101), wrong, (unsigned long long)digest);
    return 0;
}
