/* Conversion between seconds since 1970 and civil dates, before and after the epoch. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

struct civil {
    int32_t year;
    uint8_t month, day, hour, minute, second;
};

NOINLINE int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0); }
NOINLINE int64_t floor_modulo(int64_t a, int64_t b) { return a - floor_divide(a, b) * b; }

NOINLINE int64_t days_from_civil(int32_t year, unsigned month, unsigned day)
{
    year -= month <= 2;
    int64_t era = floor_divide(year, 400);
    unsigned of_era = (unsigned)(year - era * 400);
    unsigned shifted = month > 2 ? month - 3 : month + 9;
    unsigned day_of_year = (153 * shifted + 2) / 5 + day - 1;
    unsigned day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + day_of_year;
    return era * 146097 + (int64_t)day_of_era - 719468;
}

NOINLINE struct civil civil_from_seconds(int64_t seconds)
{
    int64_t days = floor_divide(seconds, 86400) + 719468;
    unsigned clock = (unsigned)floor_modulo(seconds, 86400);
    int64_t era = floor_divide(days, 146097);
    unsigned day_of_era = (unsigned)(days - era * 146097);
    unsigned of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    unsigned day_of_year = day_of_era - (365 * of_era + of_era / 4 - of_era / 100);
    unsigned shifted = (5 * day_of_year + 2) / 153;
    struct civil c;
    c.day = (uint8_t)(day_of_year - (153 * shifted + 2) / 5 + 1);
    c.month = (uint8_t)(shifted < 10 ? shifted + 3 : shifted - 9);
    c.year = (int32_t)(of_era + era * 400) + (c.month <= 2);
    c.hour = (uint8_t)(clock / 3600);
    c.minute = (uint8_t)(clock / 60 % 60);
    c.second = (uint8_t)(clock % 60);
    return c;
}

NOINLINE int64_t seconds_from_civil(struct civil c)
{
    return days_from_civil(c.year, c.month, c.day) * 86400 + c.hour * 3600 + c.minute * 60 + c.second;
}

NOINLINE uint32_t pack_dos(struct civil c)
{
    uint32_t date = (uint32_t)(c.year - 1980) << 9 | (uint32_t)c.month << 5 | c.day;
    return date << 16 | (uint32_t)c.hour << 11 | (uint32_t)c.minute << 5 | c.second >> 1;
}

NOINLINE void print(int64_t seconds)
{
    struct civil c = civil_from_seconds(seconds);
    printf("%lld = %04d-%02d-%02d %02d:%02d:%02d\n", (long long)seconds, c.year, c.month, c.day, c.hour, c.minute,
           c.second);
}

int main(void)
{
    static const int64_t moments[] = {0, -1, 951782400, 1000000000, 2147483647, 4294967295ll, -11676096000ll};
    int errors = 0;
    uint32_t sum = 0;

    for (unsigned i = 0; i < sizeof moments / sizeof *moments; i++)
        print(moments[i]);
    for (int64_t s = -30000000000ll; s < 30000000000ll; s += 31234567) {
        struct civil c = civil_from_seconds(s);
        errors += seconds_from_civil(c) != s;
        if (c.year >= 1980 && c.year < 2108)
            sum = sum * 33 + pack_dos(c);
    }
    printf("errors %d sum %08x\n", errors, sum);
    return 0;
}
