#include "array/compared.h"

#include <string.h>

#include "array/joint.h"
#include "array/pending.h"
#include "base/digest.h"
#include "ir/memo.h"
#include "mesh/constraint.h"
#include "mesh/shard_map.h"
#include "prim/prims.h"

static void options_text(ax_text *text, const ax_executable *e) {
  const ax_plan_options *o = &e->compiled.plan->options;
  ax_text_add(text,
              "compiles with reference %d, check_numerics %u, unchecked_ragged %d, contraction %s, subnormals %s, keep_unused %d, late_sums %d",
              o->reference, o->check, o->unchecked_ragged, o->contract ? "fused" : "exact", e->compiled.flushes ? "flush" : "keep",
              e->keep_unused, e->late_sums);
  ax_text_add(text, "\ndonates");
  for (uint32_t i = 0; i < e->signature.in_count; i++)
    if (e->signature.in[i].asked) ax_text_add(text, " %u", i);
  ax_text_add(text, "\n");
}

static void describe(const void *context, ax_text *text) {
  const ax_executable *e = context;
  char *program;
  options_text(text, e);
  if (ax_program_print(e->program, &program) != AX_OK) {
    text->failed = true;
    return;
  }
  ax_text_add_bytes(text, program, strlen(program));
  ax_free(program);
}

ax_status ax_executable_digest(ax_executable *e) {
  ax_text text = {0};
  ax_digester digester;
  if (e->compiled.map == NULL) return AX_OK;
  describe(e, &text);
  if (text.data == NULL || text.failed) {
    ax_text_deinit(&text);
    return ax_out_of_memory(0);
  }
  ax_digester_init(&digester);
  ax_digester_add(&digester, text.data, text.length);
  const ax_digest digest = ax_digester_finish(&digester);
  memcpy(&e->check, digest.bytes, sizeof e->check);
  e->check |= 1;
  ax_text_deinit(&text);
  return AX_OK;
}

/* --- Programs that did not compile here, but perhaps elsewhere --- */

static const ax_mesh *mesh_of(const ax_eqn *eqn) {
  if (eqn->prim == &ax_prim_shard_map) return &((const ax_shard_map_params *)eqn->params)->mesh;
  if (eqn->prim == &ax_prim_sharding_constraint) return &((const ax_constraint_params *)eqn->params)->mesh;
  return NULL;
}

/* No memory: true, so that nobody waits for this process in vain. */
static bool any_spread(ax_memo *seen, const ax_program *program) {
  ax_memo_entry *entry = ax_memo_ask(seen, "is spread", program, NULL, 0);
  if (entry == NULL) return true;
  if (entry->known) return false; /* it was looked through already */
  entry->known = true;
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_mesh *mesh = mesh_of(&program->eqns[i]);
    const ax_program *held;
    if (mesh != NULL && ax_mesh_devices(mesh) > 1) return true;
    for (uint32_t k = 0; (held = ax_eqn_program(&program->eqns[i], k)) != NULL; k++)
      if (any_spread(seen, held)) return true;
  }
  return false;
}

static bool is_spread(const ax_program *program) {
  ax_memo seen = {0};
  const bool spread = any_spread(&seen, program);
  ax_memo_deinit(&seen);
  return spread;
}

/* The options lay the program over several processes, as it seems. */
static bool is_laid(const ax_compile_options *options, uint32_t in_count) {
  if (options->mesh != NULL && ax_mesh_devices(options->mesh) > 1) return true;
  for (uint32_t i = 0; options->like.v != NULL && i < in_count && i < options->like.count; i++)
    if (options->like.v[i] != NULL && options->like.v[i]->layout->map != NULL) return true;
  return false;
}

ax_status ax_executable_compare(ax_runtime *runtime, const ax_program *program, const ax_compile_options *options, ax_status status,
                                ax_executable **out) {
  ax_processes *processes = runtime->executor.processes;
  if (processes == NULL || processes->rule.processes == 1) return status;
  const bool spread = status == AX_OK ? (*out)->compiled.map != NULL
                                      : is_laid(options, program != NULL ? program->in_count : 0) || (program != NULL && is_spread(program));
  if (!spread) return status;
  ax_pending_wait_together(runtime);
  status = ax_agree(processes, &(ax_doing){status == AX_OK ? (*out)->check : 0, describe, *out, "ax_compile"}, status);
  if (status == AX_OK) return AX_OK;
  ax_executable_release(*out);
  *out = NULL;
  return ax_error_context(status, "compile: ");
}
