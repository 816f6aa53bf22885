/* Roman numerals and numbers in English words, both ways where possible. */
#include <stdio.h>
#include <string.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE char *append(char *out, const char *text)
{
    while (*text != '\0')
        *out++ = *text++;
    *out = '\0';
    return out;
}

NOINLINE void to_roman(int n, char *out)
{
    static const short values[] = {1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1};
    static const char signs[][3] = {"M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"};
    *out = '\0';
    for (int i = 0; i < 13; i++)
        for (; n >= values[i]; n -= values[i])
            out = append(out, signs[i]);
}

NOINLINE int letter_value(char c)
{
    switch (c) {
    case 'I': return 1;
    case 'V': return 5;
    case 'X': return 10;
    case 'L': return 50;
    case 'C': return 100;
    case 'D': return 500;
    case 'M': return 1000;
    default: return 0;
    }
}

NOINLINE int from_roman(const char *text)
{
    int total = 0;
    for (; *text != '\0'; text++) {
        int value = letter_value(text[0]), next = letter_value(text[1]);
        total += value < next ? -value : value;
    }
    return total;
}

NOINLINE char *small_words(unsigned n, char *out)
{
    static const char ones[][10] = {"",        "one",     "two",       "three",    "four",     "five",    "six",
                                    "seven",   "eight",   "nine",      "ten",      "eleven",   "twelve",  "thirteen",
                                    "fourteen", "fifteen", "sixteen",   "seventeen", "eighteen", "nineteen"};
    static const char tens[][8] = {"twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"};
    if (n >= 100) {
        out = append(append(out, ones[n / 100]), " hundred");
        n %= 100;
        out = n != 0 ? append(out, " and ") : out;
    }
    if (n >= 20) {
        out = append(out, tens[n / 10 - 2]);
        n %= 10;
        out = n != 0 ? append(out, "-") : out;
    }
    return append(out, ones[n]);
}

NOINLINE void to_words(unsigned n, char *out)
{
    static const char scales[][9] = {" billion", " million", " thousand", ""};
    unsigned divisor = 1000000000;
    char *at = out;
    for (int i = 0; i < 4; i++, divisor /= 1000) {
        unsigned part = n / divisor % 1000;
        if (part == 0)
            continue;
        at = at != out ? append(at, " ") : at;
        at = append(small_words(part, at), scales[i]);
    }
    if (at == out)
        append(out, "zero");
}

NOINLINE const char *ordinal(unsigned n)
{
    unsigned units = n % 10, teen = n / 10 % 10 == 1;
    return teen || units == 0 || units > 3 ? "th" : units == 1 ? "st" : units == 2 ? "nd" : "rd";
}

int main(void)
{
    static const unsigned numbers[] = {0, 7, 13, 42, 100, 311, 1994, 2024, 65536, 1000000, 4294967295u};
    char text[160];
    size_t letters = 0;
    int wrong = 0;

    for (int n = 1; n < 4000; n++) {
        to_roman(n, text);
        wrong += from_roman(text) != n;
        letters += strlen(text);
    }
    printf("wrong %d letters %zu\n", wrong, letters);
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        to_words(numbers[i], text);
        printf("%u%s %s", numbers[i], ordinal(numbers[i]), text);
        to_roman((int)(numbers[i] % 4000), text);
        printf(" %s\n", text);
    }
    return 0;
}
