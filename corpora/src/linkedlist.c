/* Singly linked lists: building, reversal, merge sort, removal, rotation, cycles. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE static __attribute__((noinline))

struct node {
    struct node *next;
    int16_t value;
};

NOINLINE struct node *cons(int16_t value, struct node *next)
{
    struct node *fresh = malloc(sizeof *fresh);
    if (fresh == NULL)
        exit(1);
    fresh->next = next;
    fresh->value = value;
    return fresh;
}

NOINLINE unsigned length(const struct node *list)
{
    unsigned n = 0;
    for (; list != NULL; list = list->next)
        n++;
    return n;
}

NOINLINE struct node *reverse(struct node *list)
{
    struct node *done = NULL;
    while (list != NULL) {
        struct node *next = list->next;
        list->next = done;
        done = list;
        list = next;
    }
    return done;
}

NOINLINE struct node *merge(struct node *a, struct node *b)
{
    struct node *head = NULL, **tail = &head;
    while (a != NULL && b != NULL) {
        struct node **least = a->value <= b->value ? &a : &b;
        *tail = *least;
        tail = &(*tail)->next;
        *least = (*least)->next;
    }
    *tail = a != NULL ? a : b;
    return head;
}

NOINLINE struct node *split(struct node *list)
{
    struct node *fast = list->next;
    while (fast != NULL && fast->next != NULL) {
        list = list->next;
        fast = fast->next->next;
    }
    struct node *second = list->next;
    list->next = NULL;
    return second;
}

NOINLINE struct node *sort(struct node *list)
{
    if (list == NULL || list->next == NULL)
        return list;
    struct node *second = split(list);
    struct node *first = sort(list);
    return merge(first, sort(second));
}

NOINLINE unsigned remove_multiples(struct node **list, int divisor)
{
    unsigned removed = 0;
    while (*list != NULL) {
        struct node *at = *list;
        if (at->value % divisor == 0) {
            *list = at->next;
            free(at);
            removed++;
        } else {
            list = &at->next;
        }
    }
    return removed;
}

NOINLINE int has_cycle(const struct node *list)
{
    const struct node *fast = list;
    while (fast != NULL && fast->next != NULL) {
        list = list->next;
        fast = fast->next->next;
        if (list == fast)
            return 1;
    }
    return 0;
}

NOINLINE uint32_t fold(const struct node *list)
{
    uint32_t h = 17;
    for (; list != NULL; list = list->next)
        h = h * 37 + (uint32_t)list->value;
    return h;
}

int main(void)
{
    struct node *list = NULL;

    for (int i = 0; i < 500; i++)
        list = cons((int16_t)(i * 31 % 257 * 97 - 12000), list);
    printf("built %u %08x\n", length(list), fold(list));
    list = reverse(list);
    printf("reversed %08x\n", fold(list));
    list = sort(list);
    printf("sorted %08x first %d\n", fold(list), list->value);
    for (int divisor = 7; divisor > 1; divisor -= 2)
        printf("removed %u\n", remove_multiples(&list, divisor));
    printf("left %u %08x cycle %d", length(list), fold(list), has_cycle(list));
    struct node *last = list;
    while (last->next != NULL)
        last = last->next;
    last->next = list->next;
    printf(" then %d\n", has_cycle(list));
    last->next = NULL;
    remove_multiples(&list, 1);
    printf("empty %u\n", length(list));
    return 0;
}
