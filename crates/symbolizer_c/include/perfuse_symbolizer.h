// Names of JIT code by address and time, and SFrame unwinding rows: the C interface of perfuse-symbolizer.
//
// Made of crates/symbolizer_c by `make header`; docs/guides/embed.md describes its use.
//
// Each function that can fail returns a perfuse_status; perfuse_error_message() describes the last error of the thread. No function
// unwinds into its caller. Handles are opaque, and freed by the function of their type.

#ifndef PERFUSE_SYMBOLIZER_H
#define PERFUSE_SYMBOLIZER_H

#include <stddef.h>
#include <stdint.h>

// A time after all records: what is at an address now.
#define PERFUSE_LATEST UINT64_MAX

// Result of a call.
typedef enum perfuse_status {
  // Done.
  PERFUSE_OK = 0,
  // There is nothing at that address, or no code at that time.
  PERFUSE_NOT_FOUND = 1,
  // An argument is NULL or not valid.
  PERFUSE_ERROR_ARGUMENT = 2,
  // The operating system refused: perfuse_error_message() has its reason.
  PERFUSE_ERROR_IO = 3,
  // The bytes are not of the format: perfuse_error_message() states what is wrong at which offset.
  PERFUSE_ERROR_FORMAT = 4,
  // The file became shorter or was written anew while it was used: open it again.
  PERFUSE_ERROR_CUT = 5,
  // A defect of this library. The handle of the call can still be freed.
  PERFUSE_ERROR_INTERNAL = 6,
} perfuse_status;

// What an expression counts from.
typedef enum perfuse_expression_base {
  // There is no expression: the register is unchanged.
  PERFUSE_BASE_NONE = 0,
  // The stack pointer in this frame.
  PERFUSE_BASE_SP = 1,
  // The frame pointer in this frame.
  PERFUSE_BASE_FP = 2,
  // The canonical frame address: the stack pointer before the call.
  PERFUSE_BASE_CFA = 3,
  // Another register, by its DWARF number. Its value is known only in the innermost frame.
  PERFUSE_BASE_REGISTER = 4,
} perfuse_expression_base;

// Memory for the answer of a look-up, which can be used for any number of look-ups, by one thread at a time.
typedef struct perfuse_answer perfuse_answer;

// A JITDUMP file that may still be written. Threads may use one handle at the same time: look-ups run in parallel, and wait
// while perfuse_dump_push(), perfuse_dump_poll() or perfuse_dump_finish() runs.
typedef struct perfuse_dump perfuse_dump;

// The SFrame sections of a file. Threads may use one handle at the same time.
typedef struct perfuse_unwind_table perfuse_unwind_table;

// A piece of code, from one JIT_CODE_LOAD. Texts are UTF-8 and end with a NUL.
typedef struct perfuse_code {
  // Name of the function, without tier marks and position.
  const char *name;
  // Name as written.
  const char *linkage_name;
  // Tier of the compiler, as the runtime names it; NULL where unknown.
  const char *tier;
  // Address at which it was created.
  uint64_t start_address;
  // Size in bytes.
  uint64_t size_bytes;
  // Bytes from its start to the address that was looked up, wherever the code was moved to.
  uint64_t code_offset;
  // Time stamp of its record.
  uint64_t created;
  // Time stamp at which other code replaced it; UINT64_MAX where none did.
  uint64_t replaced;
  // The writer's number for it.
  uint64_t code_index;
  // Offset of its record in the dump.
  uint64_t record_offset;
  // Its number in the dump, from 0.
  uint32_t id;
  // Process id in its record.
  uint32_t pid;
  // Thread that compiled it.
  uint32_t tid;
  // 1 for a stub, thunk, builtin or handler; 0 for a compiled function.
  uint32_t is_stub;
} perfuse_code;

// A function at an address: the compiled one, or one that is inlined in it. Texts are UTF-8 and end with a NUL.
typedef struct perfuse_frame {
  // Name of the function.
  const char *function;
  // Name as written.
  const char *linkage_name;
  // Source file of the position; NULL where unknown.
  const char *path;
  // Line, from 1; 0 where unknown.
  uint32_t line;
  // Column, from 1; 0 where unknown.
  uint32_t column;
  // 1 where it is inlined in the next frame, else 0.
  uint32_t is_inlined;
} perfuse_frame;

// Facts about a dump.
typedef struct perfuse_dump_facts {
  // Number of records so far.
  uint64_t num_records;
  // Number of pieces of code so far.
  uint64_t num_code;
  // Number of bytes that belong to those records.
  uint64_t read_bytes;
  // Number of places with bytes that are not records.
  uint64_t num_damaged;
  // Process id in the header.
  uint32_t pid;
  // ELF e_machine of the code; 0 where the producer does not write it.
  uint32_t elf_machine;
  // 1 where time stamps are the processor's counter; 0 where they are nanoseconds of CLOCK_MONOTONIC.
  uint32_t has_arch_timestamps;
  // 1 where the writer closed the dump, else 0.
  uint32_t is_closed;
} perfuse_dump_facts;

// `base + offset`, or the value in memory at that address.
typedef struct perfuse_expression {
  // Offset in bytes.
  int64_t offset;
  // What it counts from.
  enum perfuse_expression_base base;
  // DWARF number of the register of PERFUSE_BASE_REGISTER, else 0.
  uint32_t register_number;
  // 1 where the value is read from memory at the address, else 0.
  uint32_t deref;
} perfuse_expression;

// How the frame of a function is left at an address.
typedef struct perfuse_unwind_row {
  // Address at which the function starts.
  uint64_t start_address;
  // Size of the function in bytes.
  uint64_t size_bytes;
  // Bytes from the start of the function at which the row begins.
  uint64_t row_offset;
  // The canonical frame address.
  struct perfuse_expression cfa;
  // The return address.
  struct perfuse_expression ra;
  // The frame pointer of the caller.
  struct perfuse_expression fp;
  // 1 where there is no caller: unwinding ends here, and there are no expressions.
  uint32_t is_outermost;
  // 1 where the return address is signed (aarch64).
  uint32_t ra_mangled;
  // 1 where a signal entered the function: its return address is the interrupted instruction, not one after a call.
  uint32_t is_signal;
} perfuse_unwind_row;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Makes memory for answers.
//
// # Safety
// `answer` is a place for a pointer.
enum perfuse_status perfuse_answer_new(struct perfuse_answer **answer);

// The code of the answer; NULL where nothing was found. It is valid until the next look-up with this answer.
//
// # Safety
// `answer` is NULL or from perfuse_answer_new(), and not freed.
const struct perfuse_code *perfuse_answer_code(const struct perfuse_answer *answer);

// The frames of the answer, innermost first, and their number. They are valid until the next look-up with this answer.
//
// # Safety
// `answer` is NULL or from perfuse_answer_new(), and not freed; `num_frames` is a place for a number.
const struct perfuse_frame *perfuse_answer_frames(const struct perfuse_answer *answer,
                                                  size_t *num_frames);

// Frees the memory; NULL is ignored.
//
// # Safety
// `answer` is NULL or from perfuse_answer_new(), and not freed.
void perfuse_answer_free(struct perfuse_answer *answer);

// Opens a file and reads the records so far. `dump` receives NULL where that fails.
//
// # Safety
// `path` ends with a NUL; `dump` is a place for a pointer.
enum perfuse_status perfuse_dump_open(const char *path, struct perfuse_dump **dump);

// Makes a dump without bytes, for perfuse_dump_push(). All bytes that are pushed stay in memory.
//
// # Safety
// `dump` is a place for a pointer.
enum perfuse_status perfuse_dump_new(struct perfuse_dump **dump);

// Appends bytes to a dump of perfuse_dump_new(), and reads the records that they complete. `num_records` receives their number;
// it may be NULL. PERFUSE_ERROR_ARGUMENT for a dump of perfuse_dump_open().
//
// # Safety
// `dump` is from perfuse_dump_new() or perfuse_dump_open(), and not freed; `bytes` has `num_bytes` bytes.
enum perfuse_status perfuse_dump_push(const struct perfuse_dump *dump,
                                      const uint8_t *bytes,
                                      size_t num_bytes,
                                      uint64_t *num_records);

// Reads what was appended to the file since the last call; a dump of perfuse_dump_new() has no file, so there is nothing to read.
// `num_records` receives the number of new records; it may be NULL.
//
// # Safety
// `dump` is from perfuse_dump_new() or perfuse_dump_open(), and not freed.
enum perfuse_status perfuse_dump_poll(const struct perfuse_dump *dump,
                                      uint64_t *num_records);

// Reads the rest when the writer has ended: after it, an incomplete or damaged record is not waited for any longer.
// `num_records` receives the number of new records; it may be NULL.
//
// # Safety
// `dump` is from perfuse_dump_new() or perfuse_dump_open(), and not freed.
enum perfuse_status perfuse_dump_finish(const struct perfuse_dump *dump,
                                        uint64_t *num_records);

// Facts about the dump; PERFUSE_NOT_FOUND before its header is complete.
//
// # Safety
// `dump` is from perfuse_dump_new() or perfuse_dump_open(), and not freed; `facts` may be written.
enum perfuse_status perfuse_dump_get_facts(const struct perfuse_dump *dump, struct perfuse_dump_facts *facts);

// Finds what is at an address at a time: the code, its functions, lines and inlined calls. `at` is a time stamp of the dump's clock,
// or PERFUSE_LATEST. Subtract 1 from a return address: it may belong to the next function. The process is that of the header, or
// of the first code where the header's has none.
//
// # Safety
// `dump` is from perfuse_dump_new() or perfuse_dump_open(), `answer` from perfuse_answer_new(), and neither is freed.
enum perfuse_status perfuse_dump_find(const struct perfuse_dump *dump,
                                      uint64_t at,
                                      uint64_t address,
                                      struct perfuse_answer *answer);

// As perfuse_dump_find(), in a process of a dump with code of several, as of a program that forked: perfuse_code has the pid.
//
// # Safety
// As of perfuse_dump_find().
enum perfuse_status perfuse_dump_find_of(const struct perfuse_dump *dump,
                                         uint32_t pid,
                                         uint64_t at,
                                         uint64_t address,
                                         struct perfuse_answer *answer);

// As perfuse_dump_find(), without frames: several times as fast.
//
// # Safety
// As of perfuse_dump_find().
enum perfuse_status perfuse_dump_find_code(const struct perfuse_dump *dump,
                                           uint64_t at,
                                           uint64_t address,
                                           struct perfuse_answer *answer);

// PERFUSE_ERROR_CUT where the file became shorter or was written anew since it was opened, so that what was read of it may be
// wrong.
//
// # Safety
// `dump` is from perfuse_dump_new() or perfuse_dump_open(), and not freed.
enum perfuse_status perfuse_dump_is_whole(const struct perfuse_dump *dump);

// Closes a dump; NULL is ignored.
//
// # Safety
// `dump` is NULL, or from perfuse_dump_new() or perfuse_dump_open(), not freed, and not used by another thread.
void perfuse_dump_free(struct perfuse_dump *dump);

// The message of the last error of this thread; empty without one. It is valid until the next call in this thread.
const char *perfuse_error_message(void);

// Name of a status: "PERFUSE_OK".
const char *perfuse_status_name(int32_t status);

// Version of the library: "0.1.0".
const char *perfuse_symbolizer_version(void);

// Opens a program, library, object file or archive, or a section alone. `table` receives NULL where that fails.
//
// # Safety
// `path` ends with a NUL; `table` is a place for a pointer.
enum perfuse_status perfuse_unwind_open(const char *path,
                                        struct perfuse_unwind_table **table);

// Copies a section that is loaded at `address`. `table` receives NULL where it cannot be read.
//
// # Safety
// `bytes` has `num_bytes` bytes; `table` is a place for a pointer.
enum perfuse_status perfuse_unwind_section(const uint8_t *bytes,
                                           size_t num_bytes,
                                           uint64_t address,
                                           struct perfuse_unwind_table **table);

// Finds the row for a program counter, which is an address of the file, not of the process.
//
// # Safety
// `table` is from perfuse_unwind_open() or perfuse_unwind_section(), and not freed; `row` may be written.
enum perfuse_status perfuse_unwind_find(const struct perfuse_unwind_table *table,
                                        uint64_t pc,
                                        struct perfuse_unwind_row *row);

// Closes a file; NULL is ignored.
//
// # Safety
// `table` is NULL, or from perfuse_unwind_open() or perfuse_unwind_section(), not freed, and not used by another thread.
void perfuse_unwind_free(struct perfuse_unwind_table *table);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* PERFUSE_SYMBOLIZER_H */
