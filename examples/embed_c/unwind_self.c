// Unwinds its own stack by the SFrame section that the assembler put into it (cc -Wa,--gsframe), and compares that with
// backtrace() of the C library. For x86-64.

#define _GNU_SOURCE
#include <execinfo.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <ucontext.h>

#include "perfuse_symbolizer.h"

enum { MOST_FRAMES = 64 };

typedef struct {
    uint64_t pc, sp, fp;
} registers;

// The value of an expression: `base + offset`, or what is in memory there.
static uint64_t value(const perfuse_expression *expression, const registers *of, uint64_t cfa, uint64_t unchanged) {
    uint64_t base;
    switch (expression->base) {
        case PERFUSE_BASE_SP: base = of->sp; break;
        case PERFUSE_BASE_FP: base = of->fp; break;
        case PERFUSE_BASE_CFA: base = cfa; break;
        default: return unchanged;
    }
    uint64_t result = base + (uint64_t)expression->offset;
    return expression->deref ? *(const uint64_t *)result : result;
}

// Goes to the caller; 0 where the file has no row for this function, or it has no caller.
static int step(const perfuse_unwind_table *table, uint64_t bias, int is_innermost, registers *of) {
    perfuse_unwind_row row;
    // A return address belongs to the instruction after the call, which may be of the next function.
    uint64_t pc = of->pc - !is_innermost - bias;
    if (perfuse_unwind_find(table, pc, &row) != PERFUSE_OK || row.is_outermost)
        return 0;
    uint64_t cfa = value(&row.cfa, of, 0, 0);
    uint64_t pc_of_caller = value(&row.ra, of, cfa, 0), fp_of_caller = value(&row.fp, of, cfa, of->fp);
    *of = (registers){.pc = pc_of_caller, .sp = cfa, .fp = fp_of_caller};
    return 1;
}

// Where the program is in memory, less where it states to be: that of the first module.
static int first_module(struct dl_phdr_info *info, size_t size, void *bias) {
    (void)size;
    *(uint64_t *)bias = info->dlpi_addr;
    return 1;
}

static int unwind(const perfuse_unwind_table *table) {
    ucontext_t context;
    void *expected[MOST_FRAMES];
    uint64_t bias = 0;
    getcontext(&context);
    int num_expected = backtrace(expected, MOST_FRAMES), num_found = 0, num_wrong = 0;
    dl_iterate_phdr(first_module, &bias);
    const greg_t *values = context.uc_mcontext.gregs;
    registers now = {(uint64_t)values[REG_RIP], (uint64_t)values[REG_RSP], (uint64_t)values[REG_RBP]};
    while (step(table, bias, num_found == 0, &now)) {
        num_found++;
        if (num_found >= num_expected || now.pc != (uint64_t)expected[num_found])
            num_wrong++;
    }
    printf("%d callers, %d of them wrong\n", num_found, num_wrong);
    return num_wrong;
}

// Frames of known and of unknown size.
static int nested(const perfuse_unwind_table *table, int depth) {
    volatile char bytes[16 * depth + 16];
    bytes[0] = 0;
    return (depth ? nested(table, depth - 1) : unwind(table)) + bytes[0];
}

int main(int argc, char **argv) {
    perfuse_unwind_table *table;
    if (argc != 1 || perfuse_unwind_open(argv[0], &table) != PERFUSE_OK) {
        fprintf(stderr, "%s: %s\n", argv[0], perfuse_error_message());
        return 2;
    }
    int num_wrong = nested(table, 10);
    perfuse_unwind_free(table);
    return num_wrong != 0;
}
