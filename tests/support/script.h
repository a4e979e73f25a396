/* Scripts (kernel/script.h) as text, for tests. A line each; `;` between acts:

     sem free = 1               (0 without a number)
     barrier full 2             arrivals
     region buf 8               bytes
     core A: wait free; store buf 0 4; signal full 2; start copy
     copy C: load buf 0 8; arrive full       (started by somebody)

   Acts: signal S [n], wait S [n], read S, arrive B, await B (the next phase), start C, join C (all its acts) or join C n, load R
   begin end, store R begin end, update R begin end (both), load+ and store+ R begin end (parts of an addition), add R begin end
   (both at once), scope R, nothing. In place of + may be * (a product), > (a maximum), <, &, | or ^, also behind add. After a `
   *n` an act is done n times. */
#ifndef AX_TESTS_SUPPORT_SCRIPT_H
#define AX_TESTS_SUPPORT_SCRIPT_H

#include "check/script.h"

/* Fails the test where the text is wrong. ax_script_deinit; names are the text's own, and are freed by test_script_free. */
typedef struct test_script {
  ax_script script;
  ax_system system;
  char *names;
} test_script;
void test_script_parse(const char *text, test_script *out);
void test_script_free(test_script *script);

#endif
