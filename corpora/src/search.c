/* String searching: naive, Knuth-Morris-Pratt, Horspool, Rabin-Karp and shift-or. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE static __attribute__((noinline))
#define LONGEST 32

NOINLINE int naive(const char *text, int n, const char *word, int m)
{
    int found = 0;
    for (int i = 0; i + m <= n; i++) {
        int j = 0;
        while (j < m && text[i + j] == word[j])
            j++;
        found += j == m;
    }
    return found;
}

NOINLINE int knuth_morris_pratt(const char *text, int n, const char *word, int m)
{
    int fail[LONGEST + 1], found = 0;
    fail[0] = -1;
    for (int i = 0, j = -1; i < m; fail[++i] = ++j)
        while (j >= 0 && word[i] != word[j])
            j = fail[j];
    for (int i = 0, j = 0; i < n; i++) {
        while (j >= 0 && (j == m || text[i] != word[j]))
            j = fail[j];
        found += ++j == m;
    }
    return found;
}

NOINLINE int horspool(const char *text, int n, const char *word, int m)
{
    uint8_t skip[256];
    int found = 0;
    memset(skip, m, sizeof skip);
    for (int i = 0; i + 1 < m; i++)
        skip[(uint8_t)word[i]] = (uint8_t)(m - 1 - i);
    for (int i = 0; i + m <= n; i += skip[(uint8_t)text[i + m - 1]])
        found += memcmp(text + i, word, (size_t)m) == 0;
    return found;
}

NOINLINE uint32_t extend(uint32_t hash, char c) { return hash * 257u + (uint8_t)c; }

NOINLINE int rabin_karp(const char *text, int n, const char *word, int m)
{
    uint32_t target = 0, rolling = 0, lead = 1;
    int found = 0;
    for (int i = 0; i < m; i++) {
        target = extend(target, word[i]);
        lead *= i == 0 ? 1u : 257u;
    }
    for (int i = 0; i < n; i++) {
        if (i >= m)
            rolling -= lead * (uint8_t)text[i - m];
        rolling = extend(rolling, text[i]);
        found += i + 1 >= m && rolling == target && memcmp(text + i + 1 - m, word, (size_t)m) == 0;
    }
    return found;
}

NOINLINE int shift_or(const char *text, int n, const char *word, int m)
{
    uint32_t mask[256], state = ~0u;
    int found = 0;
    memset(mask, 0xff, sizeof mask);
    for (int i = 0; i < m; i++)
        mask[(uint8_t)word[i]] &= ~(1u << i);
    for (int i = 0; i < n; i++) {
        state = state << 1 | mask[(uint8_t)text[i]];
        found += (int)(~state >> (m - 1) & 1);
    }
    return found;
}

int main(void)
{
    static const char *const words[] = {"a", "ab", "abab", "bba", "aabaabaa", "c", "bbbbbbbbbbb", "abbabaab"};
    static char text[2000];
    const int n = sizeof text;

    for (unsigned i = 0; i < sizeof text; i++) {
        unsigned x = i * i % 1009 ^ i >> 3;
        text[i] = (char)('a' + (i % 97 < 12 ? 1 : (x ^ x >> 2 ^ x >> 5) & 1));
    }
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
        const char *word = words[i];
        int m = (int)strlen(word);
        printf("%-12s %d %d %d %d %d\n", word, naive(text, n, word, m), knuth_morris_pratt(text, n, word, m),
               horspool(text, n, word, m), rabin_karp(text, n, word, m), shift_or(text, n, word, m));
    }
    return 0;
}
