/* Calls of the host in tests: what is printed and called, written down.

   Callbacks that texts in tests may name, where they are parsed with these hooks:

     copy    results are the operands, byte by byte */
#ifndef AX_TESTS_SUPPORT_HOST_H
#define AX_TESTS_SUPPORT_HOST_H

#include <pthread.h>

#include "axle/exec.h"
#include "ir/callback.h"

const ax_hooks *test_hooks(void);

/* What is printed, and a line for each call of test_count_call. */
typedef struct test_log {
  pthread_mutex_t lock;
  ax_text text;
  uint32_t calls;
} test_log;
void test_log_begin(test_log *log);
void test_log_end(test_log *log);
const char *test_log_text(const test_log *log);
void test_log_sort(test_log *log); /* its lines */

/* "device 2: count(1.5)" for the first element of each operand; every result's elements are the first operand's, plus one. context:
   a log. */
ax_status test_count_call(ax_callback_call *call, void *context);
ax_callback *test_callback(const char *name, ax_callback_function function, void *context);
/* Whose prints go to the log, and the calls of "count", which is registered. */
ax_runtime *test_host_runtime(ax_runtime_options options, test_log *log);
/* Runtimes under all policies, with several numbers of workers. */
extern const ax_runtime_options test_orders[];
extern const size_t test_order_count;

ax_program *test_parsed(const char *text);
/* Runs it on 1, 2, 3, .. in each input; first[k]: the first element of result k, NULL: not wanted. */
AX_MUST_USE ax_status test_run_calls(ax_runtime *runtime, ax_program *program, double *first);
/* The same by reference evaluation, with "count" and prints to the log. */
void test_evaluate_calls(ax_program *program, test_log *log);

#endif
