/* Integer matrices: product, transpose, power, determinant, trace, spiral order. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE static __attribute__((noinline))
#define N 6
#define PRIME 10007

typedef int32_t matrix[N][N];

NOINLINE int32_t wrap(int64_t x)
{
    int32_t r = (int32_t)(x % PRIME);
    return r < 0 ? r + PRIME : r;
}

NOINLINE void multiply(matrix out, matrix a, matrix b)
{
    matrix product;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            int64_t sum = 0;
            for (int k = 0; k < N; k++)
                sum += (int64_t)a[i][k] * b[k][j];
            product[i][j] = wrap(sum);
        }
    memcpy(out, product, sizeof product);
}

NOINLINE void transpose(matrix a)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < i; j++) {
            int32_t t = a[i][j];
            a[i][j] = a[j][i];
            a[j][i] = t;
        }
}

NOINLINE void power(matrix out, matrix base, unsigned exponent)
{
    matrix square;
    memcpy(square, base, sizeof square);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            out[i][j] = i == j;
    for (; exponent != 0; exponent >>= 1) {
        if (exponent & 1)
            multiply(out, out, square);
        multiply(square, square, square);
    }
}

NOINLINE int32_t inverse(int32_t a)
{
    int32_t result = 1;
    for (int e = PRIME - 2; e != 0; e >>= 1) {
        if (e & 1)
            result = wrap((int64_t)result * a);
        a = wrap((int64_t)a * a);
    }
    return result;
}

NOINLINE int32_t determinant(matrix source)
{
    matrix a;
    int32_t result = 1;
    memcpy(a, source, sizeof a);
    for (int c = 0; c < N; c++) {
        int pivot = c;
        while (pivot < N && a[pivot][c] == 0)
            pivot++;
        if (pivot == N)
            return 0;
        for (int j = 0; pivot != c && j < N; j++) {
            int32_t t = a[c][j];
            a[c][j] = a[pivot][j];
            a[pivot][j] = t;
        }
        result = wrap((int64_t)(pivot == c ? result : -result) * a[c][c]);
        int32_t scale = inverse(a[c][c]);
        for (int i = c + 1; i < N; i++) {
            int32_t factor = wrap((int64_t)a[i][c] * scale);
            for (int j = c; j < N; j++)
                a[i][j] = wrap(a[i][j] - (int64_t)factor * a[c][j]);
        }
    }
    return result;
}

NOINLINE int32_t trace(matrix a)
{
    int32_t sum = 0;
    for (int i = 0; i < N; i++)
        sum += a[i][i];
    return wrap(sum);
}

NOINLINE uint32_t fold(matrix a)
{
    uint32_t h = 1;
    for (int i = 0; i < N * N; i++)
        h = h * 31 + (uint32_t)a[i / N][i % N];
    return h;
}

int main(void)
{
    matrix a, b, c;

    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = wrap((i + 2) * (i + 2) * (j + 5) * (i ^ (j + 3)) - 50 * (i & j));
            b[i][j] = wrap((i - j) * (i + 2 * j + 1) + ((i * 5 ^ j * 3) << 2) - (i == j) * 77);
        }
    multiply(c, a, b);
    printf("product %08x trace %d\n", fold(c), trace(c));
    printf("det %d %d %d check %d\n", determinant(a), determinant(b), determinant(c),
           wrap((int64_t)determinant(a) * determinant(b)));
    transpose(a);
    printf("transposed %08x det %d\n", fold(a), determinant(a));
    for (unsigned e = 0; e < 40; e += 13) {
        power(c, a, e);
        printf("power %u %08x\n", e, fold(c));
    }
    return 0;
}
