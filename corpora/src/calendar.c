/* The Gregorian calendar: leap years, weekdays, Easter, and printed months. */
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

NOINLINE int is_leap(int year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }
NOINLINE int month_days(int year, int month) { return month == 2 ? 28 + is_leap(year) : 30 + ((month ^ month >> 3) & 1); }

NOINLINE int weekday(int year, int month, int day)
{
    int shift = month < 3;
    int y = year - shift, m = month + 12 * shift;
    return (day + (13 * (m + 1)) / 5 + y + y / 4 - y / 100 + y / 400 + 6) % 7;
}

NOINLINE int day_of_year(int year, int month, int day)
{
    int total = day;
    for (int m = 1; m < month; m++)
        total += month_days(year, m);
    return total;
}

NOINLINE int easter(int year)
{
    int golden = year % 19, century = year / 100, rest = year % 100;
    int correction = (century - (century + 8) / 25 + 1) / 3;
    int epact = (19 * golden + century - century / 4 - correction + 15) % 30;
    int sunday = (32 + 2 * (century % 4) + 2 * (rest / 4) - epact - rest % 4) % 7;
    int late = (golden + 11 * epact + 22 * sunday) / 451;
    int packed = epact + sunday - 7 * late + 114;
    return packed / 31 * 100 + packed % 31 + 1;
}

NOINLINE int iso_week(int year, int month, int day)
{
    int monday_based = (weekday(year, month, day) + 6) % 7;
    int week = (day_of_year(year, month, day) - monday_based + 9) / 7;
    int last = 52 + (weekday(year, 1, 1) == 4 || weekday(year, 12, 31) == 4);
    if (week == 0)
        return iso_week(year - 1, 12, 31);
    return week > last ? 1 : week;
}

NOINLINE int fridays_13th(int year)
{
    int count = 0;
    for (int month = 1; month <= 12; month++)
        count += weekday(year, month, 13) == 5;
    return count;
}

NOINLINE void print_month(int year, int month)
{
    int column = weekday(year, month, 1);
    printf("%04d-%02d\n%*s", year, month, 3 * column, "");
    for (int day = 1; day <= month_days(year, month); day++) {
        printf("%2d%c", day, column == 6 ? '\n' : ' ');
        column = column == 6 ? 0 : column + 1;
    }
    printf("\n");
}

int main(void)
{
    int leaps = 0, unlucky = 0, easters = 0, weeks = 0;

    for (int year = 1600; year < 2400; year++) {
        leaps += is_leap(year);
        unlucky += fridays_13th(year);
        easters += easter(year);
        weeks += iso_week(year, 1 + year % 12, 1 + year % 28);
    }
    printf("leaps %d unlucky %d easters %d weeks %d\n", leaps, unlucky, easters, weeks);
    printf("easter 2024 %d easter 2025 %d\n", easter(2024), easter(2025));
    printf("weeks %d %d %d\n", iso_week(2021, 1, 3), iso_week(2020, 12, 31), iso_week(2018, 12, 31));
    print_month(2000, 2);
    print_month(2023, 10);
    return 0;
}
