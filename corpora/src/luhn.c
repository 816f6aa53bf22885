/* Check digits of identifiers: Luhn, ISBN-10, EAN-13 and a mod-97 remainder. */
#include <ctype.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE int doubled(int digit)
{
    int twice = digit * 2;
    return twice > 9 ? twice - 9 : twice;
}

NOINLINE int luhn_valid(const char *digits)
{
    int sum = 0, length = 0;
    while (digits[length] != '\0')
        length++;
    for (int i = 0; i < length; i++) {
        int digit = digits[length - 1 - i] - '0';
        sum += i & 1 ? doubled(digit) : digit;
    }
    return sum % 10 == 0;
}

NOINLINE char isbn10_check(const char *digits)
{
    int sum = 0;
    for (int i = 0; i < 9; i++)
        sum += (10 - i) * (digits[i] - '0');
    int check = (11 - sum % 11) % 11;
    return check == 10 ? 'X' : (char)('0' + check);
}

NOINLINE int ean13_check(const char *digits)
{
    unsigned sum = 0;
    for (int i = 0; i < 12; i++)
        sum += (unsigned)(digits[i] - '0') * (1 + 2 * (i & 1));
    return (int)((10 - sum % 10) % 10);
}

NOINLINE unsigned mod97(const char *text)
{
    unsigned remainder = 0;
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (isdigit(c))
            remainder = (remainder * 10 + (c - '0')) % 97;
        else if (isupper(c))
            remainder = (remainder * 100 + (c - 'A' + 10u)) % 97;
    }
    return remainder;
}

NOINLINE void print_number(unsigned value, char *out)
{
    for (int i = 9; i >= 0; i--) {
        out[i] = (char)('0' + value % 10);
        value /= 10;
    }
    out[10] = '\0';
}

int main(void)
{
    static const char *const cards[] = {"79927398713", "79927398710", "4539578763621486", "0", "1234567812345670"};
    char buffer[11];
    int valid = 0;
    unsigned sum = 0;

    for (unsigned i = 0; i < sizeof cards / sizeof *cards; i++)
        printf("%s %s\n", cards[i], luhn_valid(cards[i]) ? "valid" : "invalid");
    for (unsigned i = 0; i < 3000; i++) {
        print_number(i * 1234567u, buffer);
        valid += luhn_valid(buffer);
        sum += mod97(buffer) + (unsigned)isbn10_check(buffer);
    }
    printf("valid %d sum %u\n", valid, sum);
    printf("isbn %c %c ean %d %d\n", isbn10_check("030640615"), isbn10_check("080442957"),
           ean13_check("400638133393"), ean13_check("978030640615"));
    printf("mod97 %u %u\n", mod97("3214282912345698765432161182"), mod97("WEST12345698765432GB82"));
    return 0;
}
