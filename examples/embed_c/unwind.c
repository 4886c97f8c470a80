// Prints how the frame of a function is left, from the SFrame section of a program: unwind PROGRAM ADDRESS...
//
// For each hexadecimal address one line: address, start of the function, canonical frame address, return address.

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "perfuse_symbolizer.h"

static void print(const perfuse_expression *expression) {
    static const char *const names[] = {"same", "sp", "fp", "cfa", "r"};
    const char *form = expression->deref ? "\t[%s%.0" PRIu32 "%+" PRId64 "]" : "\t%s%.0" PRIu32 "%+" PRId64;
    if (expression->base == PERFUSE_BASE_NONE)
        printf("\tsame");
    else
        printf(form, names[expression->base], expression->register_number, expression->offset);
}

int main(int argc, char **argv) {
    perfuse_unwind_table *table;
    if (argc < 3) {
        fprintf(stderr, "usage: unwind PROGRAM ADDRESS...\n");
        return 2;
    }
    if (perfuse_unwind_open(argv[1], &table) != PERFUSE_OK) {
        fprintf(stderr, "%s: %s\n", argv[1], perfuse_error_message());
        return 1;
    }
    for (int i = 2; i < argc; i++) {
        perfuse_unwind_row row;
        printf("%s", argv[i]);
        if (perfuse_unwind_find(table, strtoull(argv[i], NULL, 16), &row) != PERFUSE_OK) {
            printf("\t?\n");
            continue;
        }
        printf("\t%" PRIx64, row.start_address);
        if (row.is_outermost) {
            printf("\toutermost\n");
            continue;
        }
        print(&row.cfa);
        print(&row.ra);
        printf("\n");
    }
    perfuse_unwind_free(table);
    return 0;
}
