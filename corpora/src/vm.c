/* A stack machine interpreter running primes, Fibonacci and Collatz in bytecode. */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE static __attribute__((noinline))

enum op { HALT, PUSH, LOAD, STORE, ADD, SUB, MUL, MOD, AND, SHR, LESS, EQUAL, JUMP, JZERO, EMIT };

struct instruction {
    uint8_t op;
    int8_t operand;
};

struct machine {
    uint32_t stack[16], local[8], output, steps, emitted;
    uint8_t pc, sp;
};

NOINLINE void push(struct machine *m, uint32_t value) { m->stack[m->sp++ & 15] = value; }
NOINLINE uint32_t pop(struct machine *m) { return m->stack[--m->sp & 15]; }

NOINLINE uint32_t binary(enum op op, uint32_t a, uint32_t b)
{
    switch (op) {
    case ADD: return a + b;
    case SUB: return a - b;
    case MUL: return a * b;
    case MOD: return b == 0 ? 0 : a % b;
    case AND: return a & b;
    case SHR: return a >> (b & 31);
    case LESS: return a < b;
    default: return a == b;
    }
}

NOINLINE void emit(struct machine *m, uint32_t value)
{
    m->output = (m->output << 7 | m->output >> 25) ^ value;
    m->emitted++;
}

NOINLINE int step(struct machine *m, struct instruction i)
{
    uint32_t right;
    m->steps++;
    switch (i.op) {
    case HALT: return 0;
    case PUSH: push(m, (uint32_t)i.operand); break;
    case LOAD: push(m, m->local[i.operand & 7]); break;
    case STORE: m->local[i.operand & 7] = pop(m); break;
    case JUMP: m->pc = (uint8_t)i.operand; break;
    case JZERO: m->pc = pop(m) == 0 ? (uint8_t)i.operand : m->pc; break;
    case EMIT: emit(m, pop(m)); break;
    default:
        right = pop(m);
        push(m, binary((enum op)i.op, pop(m), right));
    }
    return 1;
}

NOINLINE void run(const char *name, const struct instruction *code)
{
    struct machine m = {.pc = 0};
    while (m.steps < 100000 && step(&m, code[m.pc++]))
        continue;
    printf("%s steps %u emitted %u output %08x local %u\n", name, m.steps, m.emitted, m.output, m.local[0]);
}

static const struct instruction primes[] = {
    /*  0 */ {PUSH, 2}, {STORE, 0},
    /*  2 */ {LOAD, 0}, {PUSH, 100}, {LESS, 0}, {JZERO, 27}, {PUSH, 2}, {STORE, 1},
    /*  8 */ {LOAD, 1}, {LOAD, 0}, {LESS, 0}, {JZERO, 20},
    /* 12 */ {LOAD, 0}, {LOAD, 1}, {MOD, 0}, {JZERO, 22}, {LOAD, 1}, {PUSH, -1}, {JUMP, 28}, {HALT, 0},
    /* 20 */ {LOAD, 0}, {EMIT, 0},
    /* 22 */ {LOAD, 0}, {PUSH, 1}, {ADD, 0}, {STORE, 0}, {JUMP, 2},
    /* 27 */ {HALT, 0},
    /* 28 */ {SUB, 0}, {STORE, 1}, {JUMP, 8},
};

static const struct instruction fibonacci[] = {
    /*  0 */ {PUSH, 1}, {STORE, 1},
    /*  2 */ {LOAD, 2}, {PUSH, 60}, {LESS, 0}, {JZERO, 19},
    /*  6 */ {LOAD, 0}, {LOAD, 1}, {ADD, 0}, {LOAD, 1}, {STORE, 0}, {STORE, 1}, {LOAD, 0}, {EMIT, 0},
    /* 14 */ {LOAD, 2}, {PUSH, 1}, {ADD, 0}, {STORE, 2}, {JUMP, 2},
    /* 19 */ {HALT, 0},
};

static const struct instruction collatz[] = {
    /*  0 */ {PUSH, 97}, {STORE, 0},
    /*  2 */ {LOAD, 0}, {EMIT, 0}, {LOAD, 0}, {PUSH, 1}, {EQUAL, 0}, {JZERO, 9}, {HALT, 0},
    /*  9 */ {LOAD, 0}, {PUSH, 1}, {AND, 0}, {JZERO, 20},
    /* 13 */ {LOAD, 0}, {PUSH, 3}, {MUL, 0}, {PUSH, 1}, {ADD, 0}, {STORE, 0}, {JUMP, 2},
    /* 20 */ {LOAD, 0}, {PUSH, 1}, {SHR, 0}, {STORE, 0}, {JUMP, 2},
};

int main(void)
{
    run("primes", primes);
    run("fibonacci", fibonacci);
    run("collatz", collatz);
    return 0;
}
