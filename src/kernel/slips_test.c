/* What is wrong with kernels, and the words in which it is said: of texts, and of functions being traced. */
#include <string.h>

#include "axle/collectives.h"
#include "axle/kernel.h"
#include "axle/ops.h"
#include "ir/program.h"
#include "support/cmocka.h"
#include "support/run.h"

/* --- Texts --- */

/* A kernel from x to y over a grid, with scratch a: its body, and what else can be said otherwise. */
#define CALL_OF(axes, grid, blocks, blocked, maps, shapes, scratch, arrivals, aliases, inputs, body, results)                    \
  "{ " axes " lambda x:f32[4]. let z:f32[4] = kernel_call[name=\"k\" consts=0 cores=(core) core_axes=(0) threads=() grid=(" grid \
  ") semantics=() blocks=(" blocks ") blocked=(" blocked ") index_maps=(" maps ") block_shapes=(" shapes                         \
  ") outs=(f32[4]) scratch=(" scratch ") arrivals=(" arrivals ") scratch_cores=() aliases=(" aliases                             \
  ") target=\"\" metadata=\"\" compiler_params=\"\" interpret=false debug=false collective_id=0 flops=0 bytes=0 "                \
  "transcendentals=0 bodies=({ lambda " inputs ". let " body " in (" results ") })] x in (z) }"
#define REF "ref<f32[4] vmem>"
#define BODY(scratch, arrivals, inputs, body) \
  CALL_OF("", "", REF ", " REF, "", "", "", scratch, arrivals, "", "x:" REF " y:" REF " " inputs, body, "")
#define STEP(body)                                                            \
  BODY("semaphore[2], dma_semaphore[], barrier[], ref<f32[4] hbm>", "(2, 1)", \
       "s:semaphore[2] d:dma_semaphore[] b:barrier[] h:ref<f32[4] hbm>", body)
#define COPY(received, barrier, grouped) \
  " = copy_start[axes=() logical=false received=" received " sent=false barrier=" barrier " predicate=false grouped=" grouped "] "
#define BLOCK(block, shape, map) \
  CALL_OF("", "2", block ", " REF, "(0, 0)", map, shape, "", "", "", "x:" block " y:" REF, "", "")
#define MAP "{ axes ; lambda i:s32[]. let in (i) }"

static const struct {
  const char *text, *part;
} texts[] = {
    /* types */
    {"{ lambda x:ref<f32[4]>. let in () }", "a memory space: any, hbm, vmem, smem or registers"},
    {"{ lambda x:ref<f32[4] cloud>. let in () }", "a memory space: any, hbm, vmem, smem or registers"},
    {"{ lambda x:ref<q8[4] vmem>. let in () }", "unknown dtype \"q8\""},
    {"{ lambda x:semaphore[-1]. let in () }", "a dimension is negative"},
    {"{ lambda x:" REF ". let in () }",
     "input 0 is ref<f32[4] vmem>: it is made by a kernel for its body, and does not come from outside"},
    {"{ lambda x:f32[4]. let y:f32[4] = closed_call[body={ lambda a:f32[4] r:" REF ". let in (r) }] x in (y) }",
     "result 0 is ref<f32[4] vmem>, which no program gives; ref_load"},
    /* memory where values are wanted, and the other way round */
    {STEP("a:f32[4] = neg x"), "operand 0 is ref<f32[4] vmem>, memory, and no value: ref_load gives what is in it"},
    {STEP("a:s32[] = neg s"), "operand 0 is semaphore[2], no value: kernels signal it and wait for it"},
    {STEP("a:f32[4] = ref_load[masked=false] s"), "operand 0 is semaphore[2], where a ref is needed"},
    {STEP(" = cond[branches=({ lambda . let in () })] d"), "the index is dma_semaphore[], not s32[]"},
    {STEP("a:f32[4] = ref_load[masked=false] x = ref_store[masked=false] a a"), "operand 0 is f32[4], where a ref is needed"},
    /* reading and writing */
    {STEP("a:f32[] = ref_load[masked=false] x"), "ref_load gives f32[4] here"},
    {STEP(" = ref_store[masked=false] y 1.0:f32[]"), "the value is f32[], not f32[4], for ref<f32[4] vmem>"},
    {STEP(" = ref_store[masked=true] y 1.0:f32[]"), "takes 3 operands, got 2"},
    {STEP("a:f32[4] = ref_load[masked=true] x true:bool[] 1.0:f32[]"), "the mask is bool[], not bool[4]"},
    {STEP("i:s32[4] = iota[dtype=s32 shape=(4) dimension=0] = ref_add x i"), "the value is s32[4], not f32[4]"},
    {BODY("ref<bool[] smem>", "", "f:ref<bool[] smem>", " = ref_add f true:bool[]"), "there are no sums of bools"},
    /* views */
    {STEP("r:ref<f32[2] vmem> = ref_slice[sizes=(2) strides=()] x 3:s32[]"),
     "elements 3 to 5 of dimension 0 of ref<f32[4] vmem>, which has 4"},
    {STEP("r:ref<f32[5] vmem> = ref_slice[sizes=(5) strides=()] x 0:s32[]"),
     "5 elements along dimension 0 of ref<f32[4] vmem> are too many"},
    {STEP("r:ref<f32[2] vmem> = ref_slice[sizes=(2) strides=(4)] x 0:s32[]"), "2 elements that far apart along dimension 0"},
    {STEP("r:ref<f32[2] vmem> = ref_slice[sizes=(2) strides=(0)] x 0:s32[]"), "stride 0 is 0, not at least 1"},
    {STEP("r:ref<f32[2] vmem> = ref_slice[sizes=(2) strides=()] x"), "0 starts, 1 sizes and 0 strides for 1 dimensions"},
    {STEP("r:ref<f32[2] vmem> = ref_slice[sizes=(2) strides=()] x 1.0:f32[]"), "a start is f32[], not s32[]"},
    {STEP("r:ref<f32[2,3] vmem> = ref_reshape[dims=(2, 3)] x"), "has other elements than the new dimensions hold"},
    {STEP("r:ref<f32[4] vmem> = ref_transpose[permutation=(1)] x"), "the permutation is none of the 1 dimensions"},
    /* semaphores and barriers */
    {STEP(" = semaphore_wait s 1:s32[]"), "operand 0 is semaphore[2], where one of them is needed; take ax_ref_at of it"},
    {STEP(" = semaphore_wait d 1:s32[]"),
     "operand 0 is dma_semaphore[], where a semaphore that cores signal; copies signal this one"},
    {STEP(" = semaphore_wait b 1:s32[]"), "operand 0 is barrier[], where a semaphore is needed"},
    {STEP(" = barrier_wait d"), "operand 0 is dma_semaphore[], where a barrier is needed"},
    {STEP(
         "t:semaphore[1] = ref_slice[sizes=(1) strides=()] s 0:s32[] u:semaphore[] = ref_reshape[dims=()] t = semaphore_wait u 1.0:f32[]"),
     "the amount is f32[], not s32[]"},
    {STEP("t:semaphore[1] = ref_slice[sizes=(1) strides=()] s 0:s32[] u:semaphore[] = ref_reshape[dims=()] t"
          " = semaphore_signal[axes=(q) logical=false] u 1:s32[] 0:s32[]"),
     "axis \"q\" is not bound"},
    {STEP("u:semaphore[] = barrier_semaphore = semaphore_signal[axes=() logical=true] u 1:s32[]"), "takes 3 operands, got 2"},
    {STEP("u:semaphore[] = barrier_semaphore = semaphore_signal[axes=() logical=true] u 1:s32[] 1.0:f32[]"),
     "the device's number is f32[], not s32[]"},
    /* copies */
    {STEP("r:ref<f32[2] vmem> = ref_slice[sizes=(2) strides=()] x 0:s32[]" COPY("true", "false", "false") "r y d"),
     "from ref<f32[2] vmem> to ref<f32[4] vmem>: a copy changes neither shape nor dtype"},
    {STEP(COPY("true", "false", "false") "x y b"), "operand 2 is barrier[], where a DMA semaphore is needed"},
    {STEP(COPY("false", "true", "false") "x y b"), "copies that arrive at a barrier go from hbm or any to vmem or smem"},
    {STEP(COPY("false", "false", "true") "h y"), "copies in groups go from vmem or smem to hbm or any"},
    {STEP(COPY("false", "true", "true") "h y b"),
     "it arrives at a barrier (GMEM to SMEM) or belongs to a group (SMEM to GMEM), not both"},
    {STEP(" = copy_wait_groups[pending=-1 read_only=false]"), "-1 groups are to be under way"},
    {STEP(" = copy_wait d d"), "operand 1 is dma_semaphore[], where a ref is needed"},
    /* regions */
    {STEP("n:s32[] = scan[length=2 reverse=false num_consts=0 num_carry=1 body={ lambda n:s32[] r:" REF
          ". let in (n) }] 0:s32[] x"),
     "operand 1 is ref<f32[4] vmem>, which scan cannot carry; its body uses the one around, as a constant"},
    {STEP(" = run_scoped[scratch=(f32[4]) arrivals=() along=() body={ lambda r:f32[4]. let in () }]"),
     "scratch 0 is f32[4], an array"},
    {STEP(" = run_scoped[scratch=(barrier[]) arrivals=() along=() body={ lambda r:barrier[]. let in () }]"),
     "nothing says how many arrivals complete a phase"},
    {STEP(" = run_scoped[scratch=(semaphore[]) arrivals=((0, 2)) along=() body={ lambda r:semaphore[]. let in () }]"),
     "arrivals complete a phase of barriers alone"},
    {STEP(" = run_scoped[scratch=(barrier[]) arrivals=((0, 0)) along=() body={ lambda r:barrier[]. let in () }]"),
     "0 arrivals complete a phase"},
    {STEP("s2:f32[4] = shard_map[mesh=(q=2) unchecked=true in_specs=() out_specs=(P()) body={ axes q=2? ; lambda . let"
          " a:f32[4] = constant[value=[0, 0, 0, 0]:f32[4]] in (a) }]"),
     "shard_map stands in it: a kernel is of one device"},
    /* the kernel */
    {CALL_OF("", "", REF ", " REF, "", "", "", "", "", "", "x:f32[4] y:" REF, "", ""),
     "kernels take refs, but input 0 of it is f32[4]"},
    {CALL_OF("", "", REF ", " REF, "", "", "", "", "", "", "x:" REF, "", ""),
     "it takes 1 operands; there are 0 captured values, 2 refs of operands and results and 0 scratch"},
    {CALL_OF("", "", REF ", " REF, "", "", "", "", "", "", "x:" REF " y:" REF, "", "1.0:f32[]"),
     "it gives 1 results; a kernel stores its results, and gives none"},
    {CALL_OF("", "", REF ", " REF, "", "", "", "", "", "(0, 1)", "x:" REF " y:" REF, "", ""),
     "alias 0 is of operand 0 and result 1; there are 1 and 1"},
    {CALL_OF("", "", REF ", " REF, "", "", "", "", "", "(0, 0), (0, 0)", "x:" REF " y:" REF, "", ""),
     "aliases 0 and 1 are of one operand"},
    {CALL_OF("", "", REF, "", "", "", "", "", "", "x:" REF " y:" REF, "", ""), "1 blocks for 2 operands and results"},
    {CALL_OF("", "", "ref<f32[2] vmem>, " REF, "", "", "", "", "", "", "x:ref<f32[2] vmem> y:" REF, "", ""),
     "operand 0: it is f32[4] and has no blocks, but bodies get ref<f32[2] vmem>"},
    {CALL_OF("", "", REF ", ref<f32[4] registers>", "", "", "", "", "", "", "x:" REF " y:ref<f32[4] registers>", "", ""),
     "result 0: its block is ref<f32[4] registers>: registers are scratch"},
    {CALL_OF("", "", REF ", " REF, "", "", "", "barrier[]", "", "", "x:" REF " y:" REF " b:barrier[]", "", ""),
     "scratch 0 is barrier[], and nothing says"},
    {CALL_OF("", "", REF ", " REF, "", "", "", "", "", "", "x:" REF " y:" REF, "i:s32[] = program_id[dimension=0]", ""),
     "program_id of dimension 0 stands in it, but the grid has 0 dimensions"},
    {CALL_OF("axes d=2 ;", "", REF ", " REF, "", "", "", "", "", "", "x:" REF " y:" REF, "", ""),
     "its axes are d (2); they are to be those around, d (2), unchecked"},
    {BLOCK("ref<f32[2] vmem>", "f32[3]", MAP), "bodies get ref<f32[2] vmem>, which is no block f32[3]"},
    {BLOCK("ref<f32[2] hbm>", "f32[2]", MAP), "what is pinned outside of vmem and smem has no blocks"},
    {BLOCK("ref<f32[2] vmem>", "f32[2]", ""), "there is no index map 0"},
    {BLOCK("ref<f32[2] vmem>", "f32[2]", "{ axes ; lambda . let in (0:s32[]) }"),
     "its index map takes 0 values and gives 1, not 1, for the grid, and 1"},
    {BLOCK("ref<f32[2] vmem>", "f32[2]", "{ axes ; lambda i:s32[]. let in (1.0:f32[]) }"),
     "its index map result 0 is f32[], not s32[]"},
    {BLOCK("ref<f32[2] vmem>", "f32[2,1]", MAP), "are not of f32[4]"},
};

static void refused(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(texts); i++) {
    ax_program *program = NULL;
    ax_status status = ax_program_parse(texts[i].text, strlen(texts[i].text), "t", &program);
    if (status != AX_PARSE_ERROR || strstr(ax_message(), texts[i].part) == NULL)
      fail_msg("%zu: %s: %s\nwanted: %s\n%s", i, ax_status_name(status), status != AX_OK ? ax_message() : "", texts[i].part,
               texts[i].text);
  }
}

/* The texts that these are made of are all right by themselves. */
static void taken(void **state) {
  (void)state;
  static const char *const right[] = {STEP(""),
                                      BLOCK("ref<f32[2] vmem>", "f32[2]", MAP),
                                      BODY("ref<bool[] smem>", "", "f:ref<bool[] smem>", ""),
                                      STEP(COPY("true", "false", "false") "x y d"),
                                      STEP(COPY("false", "true", "false") "h y b"),
                                      STEP(COPY("false", "false", "true") "x h"),
                                      CALL_OF("", "", REF ", " REF, "", "", "", "", "", "(0, 0)", "x:" REF " y:" REF, "", "")};
  for (size_t i = 0; i < AX_COUNT(right); i++) {
    ax_program *program;
    TEST_OK(ax_program_parse(right[i], strlen(right[i]), "t", &program));
    TEST_OK(ax_program_verify(program));
    ax_program_release(program);
  }
}

/* --- Functions --- */

static AX_BODY(nothing) {}
static AX_BODY(one_result) { out[0] = in[0]; }

static AX_BODY(slip) {
  ax_value start = ax_integer(3), ref[1];
  switch (*(const int *)context) {
    case 0: ax_ref_slice(in[0], &start, AX_DIMS(2)); break;
    case 1: ax_ref_at(in[0], ax_integer(-1)); break;
    case 2: ax_ref_store(in[1], in[0]); break;
    case 3: ax_ref_store(ax_ref_load(in[0]), ax_real(1)); break;
    case 4: ax_semaphore_wait(in[2], ax_integer(-2)); break;
    case 5: ax_semaphore_wait(in[2], ax_integer(INT64_MAX)); break;
    case 6:
      ax_semaphore_signal(in[2], ax_integer(1), &(ax_target_core){.axes = "q", .coordinates = {AX_VALUES(start)}});
      break;
    case 7: ax_semaphore_signal(in[2], ax_integer(1), &(ax_target_core){.axes = "q", .logical = true}); break;
    case 8: ax_semaphore_signal(in[2], ax_integer(1), &(ax_target_core){.axes = "q"}); break;
    case 9: (void)ax_program_id(2); break;
    case 10: (void)ax_num_programs(1); break;
    case 11: ax_run_scoped(AX_LIST(1, &(ax_scratch){.type = ax_barrier_type(AX_DIMS())}), NULL, AX_FN(nothing, 1, 0), NULL); break;
    case 12: ax_run_scoped(AX_LIST(0, NULL), NULL, AX_FN(nothing, 1, 0), NULL); break;
    case 13: ax_run_scoped(AX_LIST(1, &(ax_scratch){.type = AX_VMEM(AX_F32, 2)}), NULL, AX_FN(one_result, 1, 1), ref); break;
    case 14: ax_ref_store(in[0], ax_full(AX_S32, AX_DIMS(), 1)); break;
    case 15: ax_add(in[0], in[0]); break;
    case 16: ax_kernel_trace_begin(NULL); break;
    case 17: ax_psum(ax_ref_load(in[0]), "d"); break;
    case 18: ax_run_scoped(AX_LIST(1, &(ax_scratch){.type = AX_VMEM(AX_F32, 2)}), "d", AX_FN(nothing, 1, 0), NULL); break;
    case 19: ax_kernel_call(&(ax_kernel){0}, AX_FN(nothing, 1, 0), AX_LIST(1, in), NULL); break;
    case 20: ax_ref_load(ax_real(2)); break;
    case 21: ax_emit_pipeline(NULL, AX_FN(nothing, 1, 0), in); break;
  }
}

static AX_BODY(call_slip) {
  const ax_scratch scratch[] = {{.type = ax_semaphore_type(AX_DIMS())}};
  ax_kernel_call(
      (&(ax_kernel){.grid = {AX_DIMS(2)}, .outs = {AX_TYPES(AX_TYPE(AX_F32, 4))}, .options = {.scratch = {AX_LIST(1, scratch)}}}),
      AX_CLOSURE(slip, 3, 0, context), AX_LIST(1, in), out);
}

static const struct {
  int slip;
  const char *part;
  ax_status status;
} slips[] = {
    {0, "kernel_call: body: ref_slice: elements 3 to 5 of dimension 0 of ref<f32[4] vmem>, which has 4", AX_INVALID_ARGUMENT},
    {1, "ref_at: elements -1 to 0 of dimension 0", AX_INVALID_ARGUMENT},
    {2, "the value is ref<f32[4] vmem>, not f32[4]", AX_INVALID_ARGUMENT},
    {3, "ref_store: f32[4] is an array, and no ref", AX_INVALID_ARGUMENT},
    {4, "semaphore_wait: the amount is -2; it is at least 0", AX_INVALID_ARGUMENT},
    {5, "semaphore_wait", AX_INVALID_ARGUMENT},
    {6, "axis \"q\" is not bound", AX_INVALID_ARGUMENT},
    {7, "a core is named by axes and coordinates or by the number of its device, not by both", AX_INVALID_ARGUMENT},
    {8, "axes \"q\" take 1 coordinate, but there are 0", AX_INVALID_ARGUMENT},
    {9, "program_id: dimension 2 of a grid of 1 dimension", AX_INVALID_ARGUMENT},
    {10, "num_programs: dimension 1 of a grid of 1 dimension", AX_INVALID_ARGUMENT},
    {11, "run_scoped: scratch 0: 0 arrivals complete a phase; it is at least 1", AX_INVALID_ARGUMENT},
    {12, "run_scoped: the function takes 1 operands, but there are 0 scratch", AX_INVALID_ARGUMENT},
    {13, "run_scoped: body: result 0 is ref<f32[2] vmem>, which no program gives; ref_load", AX_INVALID_ARGUMENT},
    {14, "the value is s32[4], not f32[4], for ref<f32[4] vmem>", AX_INVALID_ARGUMENT},
    {15, "operand 0 is ref<f32[4] vmem>, memory, and no value", AX_INVALID_ARGUMENT},
    {16, "the span has no name", AX_INVALID_ARGUMENT},
    {17, "psum stands in it: between devices kernels copy and signal", AX_INVALID_ARGUMENT},
    {18, "run_scoped along \"d\", which is an axis of devices", AX_INVALID_ARGUMENT},
    {19, "kernel_call ref<f32[4] vmem>: operand 0 is ref<f32[4] vmem>, memory, and no value", AX_INVALID_ARGUMENT},
    {20, "ref_load: a number is no ref", AX_INVALID_ARGUMENT},
    {21, "emit_pipeline: there are no options", AX_INVALID_ARGUMENT},
};

static void traced(void **state) {
  (void)state;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  for (size_t i = 0; i < AX_COUNT(slips); i++) {
    ax_program *program = NULL;
    ax_status status = ax_trace_on(&mesh, AX_CLOSURE(call_slip, 1, 1, &slips[i].slip), AX_TYPES(AX_TYPE(AX_F32, 4)), &program);
    if (status != slips[i].status || strstr(ax_message(), slips[i].part) == NULL)
      fail_msg("%d: %s: %s\nwanted: %s", slips[i].slip, ax_status_name(status), status != AX_OK ? ax_message() : "", slips[i].part);
  }
}

/* --- Kernels and meshes --- */

static AX_BODY(make) {
  const ax_kernel call = {.outs = {AX_TYPES(AX_TYPE(AX_F32, 4))}};
  const ax_scratch vmem = {.type = AX_VMEM(AX_F32, 2)}, of_c = {.type = AX_VMEM(AX_F32, 2), .core = "c"},
                   shared = {.type = AX_VMEM(AX_F32, 2), .core = "a", .shared = true};
  const int64_t minus[] = {-2}, square[] = {2, 2};
  const ax_type semaphores[] = {ax_semaphore_type(AX_DIMS())};
  ax_kernel k = call;
  ax_core_mesh meshes[] = {{.core = "a"}, {.core = "b"}};
  ax_fn bodies[] = {AX_FN(nothing, 2, 0), AX_FN(nothing, 2, 0)};
  ax_kernel_options options = {0};
  ax_block_spec spec = {.block = {AX_DIMS(2)}};
  uint32_t count = 2;
  int which = *(const int *)context;
  out[0] = in[0];
  k.in_specs = (ax_block_spec_list){1, &spec};
  meshes[0].mesh = meshes[1].mesh = (ax_mesh){.count = 1, .axis = {{.name = "core", .size = 2}}};
  switch (which) {
    case 0:
      spec.block.v = minus;
      break;
    case 1:
      spec.block = (ax_dim_list){2, square};
      break;
    case 2: spec.space = AX_SPACE_HBM; break;
    case 3: spec.space = AX_SPACE_REGISTERS; break;
    case 4:
      k.grid = (ax_dim_list){1, minus};
      break;
    case 5: k.options.flops = -1; break;
    case 6:
      k.options.scratch = (ax_scratch_list){1, &vmem};
      break;
    case 7:
      k.outs.v = semaphores;
      break;
    case 8:
      k.outs.v = NULL;
      break;
    case 20: count = 0; break;
    case 21: meshes[1].mesh.axis[0].size = 4; break;
    case 22: meshes[1].core = "not a name"; break;
    case 23: meshes[1].mesh.axis[0].name[0] = 'd', meshes[1].mesh.axis[0].name[1] = 0; break;
    case 24:
      options.scratch = (ax_scratch_list){1, &vmem};
      break;
    case 25:
      options.scratch = (ax_scratch_list){1, &of_c};
      break;
    case 26:
      options.scratch = (ax_scratch_list){1, &shared};
      break;
    case 27: bodies[1].out_count = 1; break;
    case 28: bodies[1].in_count = 1; break;
    case 29: meshes[1].threads = "wg"; break;
    case 30:
      options.aliases.count = 1;
      break;
  }
  if (which < 20) ax_kernel_call(&k, AX_FN(nothing, 2, 0), AX_LIST(1, in), out);
  else
    ax_mpmd_map(AX_LIST(count, meshes), bodies, &options, AX_LIST(1, in), AX_LIST(1, call.outs.v), out);
}

static const struct {
  int slip;
  const char *part;
} made[] = {
    {0, "kernel_call: operand 0: dimension 0 of the block is -2"},
    {1, "kernel_call: operand 0: a block of 2 dimensions, but it is f32[4]"},
    {2, "kernel_call: operand 0: what is pinned in hbm has no blocks: bodies get the whole of it"},
    {3, "kernel_call: operand 0: registers is no space for operands"},
    {4, "kernel_call: dimension 0 of the grid is -2"},
    {5, "kernel_call: -1 operations are estimated"},
    {6, "kernel_call: body: it takes 2 operands; there are 1 refs of operands, 1 of results and 1 scratch"},
    {7, "result 0 is semaphore[], not an array"},
    {8, "there is no list of the types of 1 results"},
    {20, "mpmd_map: 0 meshes: at least one mesh and its function are needed"},
    {21, "mpmd_map: mesh 1: meshes 0 and 1: conflicting size for axis core: 2 and 4"},
    {22, "mpmd_map: mesh 1: the core type: \"not a name\" is no name"},
    {23, "the core axis \"d\" is called as an axis of devices in scope"},
    {24, "mpmd_map: scratch 0: ref<f32[2] vmem> says no core type"},
    {25, "mpmd_map: scratch 0: it is of the core type \"c\", which no mesh has"},
    {26, "mpmd_map: scratch 0: it is of the core type \"a\", and shared by all cores"},
    {27, "mpmd_map: body 1, of \"b\": it gives 1 results; a kernel stores its results, and gives none"},
    {28, "mpmd_map: body 1, of \"b\": it takes 1 operands"},
    {29, "mpmd_map: mesh 1: threads along \"wg\", which the mesh has not"},
    {30, "mpmd_map: there is no list of the 1 aliases"},
};

static void meshes(void **state) {
  (void)state;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=2", &mesh));
  for (size_t i = 0; i < AX_COUNT(made); i++) {
    ax_program *program = NULL;
    ax_status status = ax_trace_on(&mesh, AX_CLOSURE(make, 1, 1, &made[i].slip), AX_TYPES(AX_TYPE(AX_F32, 4)), &program);
    if (status != AX_INVALID_ARGUMENT || strstr(ax_message(), made[i].part) == NULL)
      fail_msg("%d: %s: %s\nwanted: %s", made[i].slip, ax_status_name(status), status != AX_OK ? ax_message() : "", made[i].part);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(refused), cmocka_unit_test(taken), cmocka_unit_test(traced),
                                     cmocka_unit_test(meshes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
