/* Six sorting algorithms on the same pseudo-random keys, each checked. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE static __attribute__((noinline))
#define COUNT 400

NOINLINE void swap(int32_t *a, int32_t *b)
{
    int32_t t = *a;
    *a = *b;
    *b = t;
}

NOINLINE void insertion_sort(int32_t *v, int n)
{
    for (int i = 1; i < n; i++) {
        int32_t key = v[i];
        int j = i - 1;
        for (; j >= 0 && v[j] > key; j--)
            v[j + 1] = v[j];
        v[j + 1] = key;
    }
}

NOINLINE void selection_sort(int32_t *v, int n)
{
    for (int i = 0; i < n - 1; i++) {
        int least = i;
        for (int j = i + 1; j < n; j++)
            least = v[j] < v[least] ? j : least;
        swap(&v[i], &v[least]);
    }
}

NOINLINE void shell_sort(int32_t *v, int n)
{
    for (int gap = n / 2; gap > 0; gap /= 2)
        for (int i = gap; i < n; i++)
            for (int j = i - gap; j >= 0 && v[j] > v[j + gap]; j -= gap)
                swap(&v[j], &v[j + gap]);
}

NOINLINE void quick_sort(int32_t *v, int n)
{
    int i = 0, j = n - 1;
    if (n < 2)
        return;
    int32_t pivot = v[n / 2];
    while (i <= j) {
        while (v[i] < pivot)
            i++;
        while (v[j] > pivot)
            j--;
        if (i <= j)
            swap(&v[i++], &v[j--]);
    }
    quick_sort(v, j + 1);
    quick_sort(v + i, n - i);
}

NOINLINE void merge_sort(int32_t *v, int n)
{
    int32_t merged[COUNT];
    int half = n / 2, i = 0, j = half;
    if (n < 2)
        return;
    merge_sort(v, half);
    merge_sort(v + half, n - half);
    for (int k = 0; k < n; k++)
        merged[k] = j == n || (i < half && v[i] <= v[j]) ? v[i++] : v[j++];
    memcpy(v, merged, (size_t)n * sizeof *v);
}

NOINLINE void radix_sort(int32_t *v, int n)
{
    uint32_t from[COUNT], to[COUNT];
    for (int i = 0; i < n; i++)
        from[i] = (uint32_t)v[i] ^ 0x80000000u;
    for (int shift = 0; shift < 32; shift += 8) {
        int start[257] = {0};
        for (int i = 0; i < n; i++)
            start[(from[i] >> shift & 0xff) + 1]++;
        for (int i = 0; i < 256; i++)
            start[i + 1] += start[i];
        for (int i = 0; i < n; i++)
            to[start[from[i] >> shift & 0xff]++] = from[i];
        memcpy(from, to, sizeof from);
    }
    for (int i = 0; i < n; i++)
        v[i] = (int32_t)(from[i] ^ 0x80000000u);
}

NOINLINE int is_sorted(const int32_t *v, int n)
{
    int ordered = 1;
    for (int i = 1; i < n; i++)
        ordered &= v[i - 1] <= v[i];
    return ordered;
}

int main(void)
{
    static void (*const sorts[])(int32_t *, int) = {insertion_sort, selection_sort, shell_sort,
                                                    quick_sort,     merge_sort,     radix_sort};
    for (unsigned s = 0; s < sizeof sorts / sizeof *sorts; s++) {
        int32_t keys[COUNT];
        uint32_t x = 2463534242u, sum = 0;
        for (int i = 0; i < COUNT; i++) {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
            keys[i] = (int32_t)x >> (i % 20);
        }
        sorts[s](keys, COUNT);
        for (uint32_t i = 0; i < COUNT; i++)
            sum += (uint32_t)keys[i] * (i + 1);
        printf("sort %u ordered %d sum %08x median %d\n", s, is_sorted(keys, COUNT), sum, keys[COUNT / 2]);
    }
    return 0;
}
