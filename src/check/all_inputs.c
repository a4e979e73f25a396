/* A proof for all inputs, from one run.

   The *class*. K(v) is the kernel with operands v; shapes, mesh and program are fixed. It is in the class if

     1. each act by which agents meet is the same for all v: its kind, object, amount, device and predicate. So signals, waits,
        barriers, scopes and starts of copies do not stand in branches and loops that depend on v, but for blocks. A *block* is a
        way of such a branch, or a round of such a loop, that starts copies on its own device and waits for all of them; their
        semaphores serve blocks of this core alone. It may have scopes of its own. No count is read. A loop that depends on v counts
        up, by 1, to a bound;
     2. each view has its starts from integers that are followed (symbols.h): sums of symbols with constant factors, or anything
        else within bounds, those of the branches around it too, of numbers and of sums of these (guards.c). Of a sum whose
        factors are all multiples of 2^k only every 2^k-th number is within them, also where it wraps. Slices, loads, stores, copies and masks may depend on v,
        and branches on v may guard loads and stores.

   The *general run* W has the acts of a run of K(u) for the u of the check, in its order. For each load and store in a branch on v,
   W has an act, on all ways; it stands before the core's next act outside of the branch. So do the acts of blocks, those of a copy
   where it is started. Of a loop on v, W has a few rounds, of which each round of K(v) is one as far as W knows. Each touch of W
   has all bytes that the act touches for any v, in any of its rounds (general.c, general_branches.c, wide.c).

   Lemma 1. Say that no view of K(v) leaves its memory. Then K(v) has a run R(v) whose acts are those of W in W's order, but for
   accesses and blocks of ways that v does not take, and rounds, which are as many as v says; and each touches at most what it
   touches in W. By induction over W: values of R(v) are among those that are known in W. For equations by their rules (prim/intervals.c,
   symbols.c). For memory as loads give what the stores before them in this order have left, or one of several where a store may not
   come (general_memory.c). So a core's next act follows by 1. It can be done, as counts and phases are those of K(u)'s run at that
   step: an access changes neither, and a block leaves its semaphores as they were. One that is done later holds nobody up but the
   end of its device, which waits for the core's last act in W too.

   Lemma 2. If act e of R(v) is needed (prove.c) for f in the game of W, so it is in the game of R(v). For say that a run of R(v)'s
   game holds e and does f. Add to it what W has besides: accesses, and each block as a whole when its core comes to it. That can be
   done: a copy that has been started is held up by nothing, and the block's own signals suffice for its waits. Counts are as
   before. Take from it all rounds of a loop on v but the one of e, or of f. What is left can still be done: a round leaves counts as
   they were, and does its waits by its own signals. So W's game holds e and does f too. Of two rounds of one core nothing is asked:
   all copies of the one are done before the other begins. A symbol that a loop changes is one of a core's own rounds, and no other
   core's.

   Theorem. Say that ax_prove proves W, no float sum being judged by its values; that all bytes that are read, and all results, are
   written for all v (below); and that no copy reads a store that is not committed. Then K(v) is proved for each v with which no
   view leaves its memory. Proof. Acts that conflict in R(v) touch common bytes, so their acts in W conflict. For touches of W say
   that much: two of different classes have all bytes that either may be of, in the region that all classes share. Two of one class
   begin at s + a and s + b with the same s, a sum of starts times strides. The starts of both are within bounds below 2^31, and
   differ by a constant modulo 2^32 of less than 2^31, so that is their difference, and they meet for one v if and only if they meet
   for all: in the class's own region. So all pairs of R(v) that conflict are in order by need, by lemma 2, waits and counts among
   them; and theorem 1 of prove.c says of R(v) what it says of a run. Its other faults are those of W, which has none: deadlocks,
   counts and barriers at the end are of acts that W and R(v) share, or of blocks, which leave nothing. Copies and scopes that are
   outlived are too, or of touches that W has with at least those bytes. Locks: theirs (locks.c) is a statement on pairs and acts of
   the game, and on additions. These have the same addresses for all v, or are no additions in W.

   Written bytes: a byte counts as written in W after a store that comes for all v, at an address that is the same for all,
   unmasked. All other stores and copies write what was written or leave it; a copy of bytes that were not written takes theirs from
   them.

   Points of a grid that are in no order: W has all that R(v) touches, so strands.c says of each R(v) what it says of W.

   If no view can leave its memory, whatever v, the kernel is proved for all inputs. Else for all that stay within bounds. */
#include "check/all_inputs.h"

#include "check/decides.h"
#include "check/general.h"

static void add_finding(const ax_proof *proof, ax_text *why) {
  const ax_act_finding *finding = proof->findings.count > 0 ? &proof->findings.items[0] : NULL;
  if (finding != NULL && finding->text != NULL)
    ax_text_add(why, "for some inputs there may be a %s", finding->text);
  else
    ax_text_add(why, "%s", proof->why_not != NULL ? proof->why_not : "the order of acts is not certain for some inputs");
}

/* Whether points that are in no order may depend on one another, for some inputs. */
static ax_status judge_strands(const ax_general *g, const ax_act_record *record, ax_all_inputs *out) {
  ax_act_findings found = {0};
  ax_point_label *labels = ax_alloc(((size_t)record->step_count + 1) * sizeof labels[0]);
  if (labels == NULL) return ax_out_of_memory(record->step_count * sizeof labels[0]);
  for (uint32_t s = 0; s < record->step_count; s++) labels[s] = g->wide.steps[s].label;
  const ax_status status = ax_strands_find(g->machine, record, labels, 1, &found);
  if (status == AX_OK && found.count > 0) {
    out->has_proof = false;
    out->strands_depend = true;
    ax_text_add(&out->why, "for some inputs there may be a %s", found.items[0].text);
  }
  ax_act_findings_deinit(&found);
  ax_free(labels);
  return status;
}

static ax_status judge(const ax_general *g, const ax_act_objects *objects, const uint32_t *symmetry, ax_all_inputs *out) {
  ax_act_record record;
  const ax_proof_options options = {.symmetry = symmetry, .first_suffices = true};
  AX_TRY(ax_wide_record(&g->wide, objects, &record));
  ax_status status = ax_prove(&record, &options, &out->proof);
  out->has_proof = status == AX_OK && out->proof.proved && !out->proof.exact;
  if (out->has_proof && g->strands) status = judge_strands(g, &record, out);
  if (out->has_proof && status == AX_OK) {
    out->proved_for = g->outside[0] == '\0' ? AX_INPUTS_ALL : AX_INPUTS_IN_BOUNDS;
    ax_text_add(&out->why, "%s", g->outside);
  } else if (status == AX_OK && !out->strands_depend)
    add_finding(&out->proof, &out->why);
  ax_act_record_deinit(&record);
  return status;
}

void ax_all_inputs_deinit(ax_all_inputs *all) {
  ax_proof_deinit(&all->proof);
  ax_text_deinit(&all->why);
}

/* What the program says of the kernel's operands. *any: one that is not fixed decides what `kinds` has. */
static ax_status look_at_operands(const ax_program *program, const ax_machine *machine, const uint8_t *operands, uint8_t kinds,
                                  ax_operand_fact **facts, bool *any) {
  const uint32_t count = machine->eqn->in_count;
  *any = false;
  *facts = ax_calloc(count + 1, sizeof(*facts)[0]);
  if (*facts == NULL) return ax_out_of_memory(0);
  AX_TRY(ax_facts_of(program, machine->eqn, *facts));
  for (uint32_t i = 0; i < count; i++) {
    (*facts)[i].decides = (operands[i] & AX_DECIDES_ACTS) != 0;
    *any = *any || (!(*facts)[i].fixed && (operands[i] & kinds) != 0);
  }
  return AX_OK;
}

static ax_status prove(ax_watch *watch, const ax_act_record *run, const ax_operand_fact *facts, const uint32_t *symmetry,
                       ax_all_inputs *out) {
  ax_general g = {.machine = watch->machine,
                  .run = run,
                  .notes = watch->notes,
                  .facts = facts,
                  .in = watch->in,
                  .strands = watch->labels_steps};
  ax_status status = ax_general_create(&g);
  if (status == AX_OK) status = ax_general_go(&g);
  if (status == AX_OK) status = judge(&g, &run->objects, symmetry, out);
  if (status != AX_OK && status != AX_OUT_OF_MEMORY) { /* it cannot be followed; or a way that this run does not take has an error */
    out->proved_for = AX_INPUTS_THESE;
    out->has_proof = false;
    ax_text_add(&out->why, "%s", ax_message());
    status = AX_OK;
  }
  ax_general_deinit(&g);
  return status;
}

ax_status ax_all_inputs_prove(const ax_program *program, ax_watch *watch, const ax_act_record *run, const uint8_t *operands,
                              const uint32_t *symmetry, ax_all_inputs *out) {
  ax_operand_fact *facts;
  *out = (ax_all_inputs){.proved_for = AX_INPUTS_THESE};
  if (watch->note_count != run->step_count)
    return ax_error(AX_INTERNAL, "a run has %u steps, and notes of %u", run->step_count, watch->note_count);
  ax_status status = look_at_operands(program, watch->machine, operands, AX_DECIDES_ACTS, &facts, &out->depends);
  if (!out->depends) out->proved_for = AX_INPUTS_ALL;
  if (status == AX_OK && out->depends) status = prove(watch, run, facts, symmetry, out);
  ax_free(facts);
  return status == AX_OK && out->why.failed ? ax_out_of_memory(0) : status;
}

ax_status ax_all_inputs_search(const ax_program *program, const ax_machine *machine, const uint8_t *operands, ax_all_inputs *out) {
  ax_operand_fact *facts;
  *out = (ax_all_inputs){.proved_for = AX_INPUTS_THESE};
  const ax_status status =
      look_at_operands(program, machine, operands, AX_DECIDES_ACTS | AX_DECIDES_RESULTS, &facts, &out->depends);
  if (!out->depends) out->proved_for = AX_INPUTS_ALL;
  if (out->depends) ax_text_add(&out->why, "all schedules were searched, with these values");
  ax_free(facts);
  return status == AX_OK && out->why.failed ? ax_out_of_memory(0) : status;
}
