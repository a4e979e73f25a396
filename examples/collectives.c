/* Every collective on four devices: what each device has before and after, and how the types say it spreads over them. Device d
   holds the numbers 10 d + 0, 10 d + 1, ..; docs/collectives.md shows what this prints. */
#include <axle/axle.h>
#include <stdio.h>

enum { devices = 4 };

static ax_value psum(ax_value x) { return ax_psum(x, "d"); }
static ax_value psum_of_groups(ax_value x) { return ax_psum(x, "d {0,2} {1,3}"); }
static ax_value psum_uneven(ax_value x) { return ax_psum(x, "d {0} {1,2,3}"); }
static ax_value psum_positional(ax_value x) { return ax_psum(x, "d,0"); }
static ax_value pmean(ax_value x) { return ax_pmean(x, "d"); }
static ax_value pmax(ax_value x) { return ax_pmax(x, "d"); }
static ax_value pmin(ax_value x) { return ax_pmin(x, "d"); }
static ax_value pargmax(ax_value x) { return ax_pargmax(x, "d"); }
static ax_value pargmin(ax_value x) { return ax_pargmin(x, "d"); }
static ax_value gather(ax_value x) { return ax_all_gather(x, "d", 0, true); }
static ax_value gather_groups(ax_value x) { return ax_all_gather(x, "d {0,2} {3,1}", 0, true); }
static ax_value gather_invariant(ax_value x) { return ax_all_gather_invariant(x, "d", 0, true); }
static ax_value gather_reduced(ax_value x) { return ax_all_gather_reduced(x, "d", 0, true); }
static ax_value scatter(ax_value x) { return ax_psum_scatter(x, "d", 0, true); }
static ax_value trade(ax_value x) { return ax_all_to_all(x, "d", 0, 0, true); }
static ax_value swap(ax_value x) { return ax_pswapaxes(x, "d", 0); }
static ax_value permute(ax_value x) { return ax_ppermute(x, "d", AX_PAIRS({0, 1}, {1, 3})); }
static ax_value ring(ax_value x) { return ax_pshift(x, "d", 1, true); }
static ax_value line(ax_value x) { return ax_pshift(x, "d", -1, false); }
static ax_value shuffle(ax_value x) { return ax_pshuffle(x, "d", AX_DIMS(2, 0, 3, 1)); }
static ax_value broadcast(ax_value x) { return ax_pbroadcast(x, "d", 2); }
static ax_value message(ax_value x) {
  ax_value token = ax_psend(x, "d", AX_PAIRS({0, 3}));
  return ax_precv(token, ax_typeof(x), "d", AX_PAIRS({0, 3}));
}
static ax_value member_number(ax_value x) { return (void)x, ax_axis_index("d"); }
static ax_value unreduced(ax_value x) { return ax_unreduced_psum(ax_vary_unreduced_cast(x, "d", AX_UNREDUCED_SUM), "d"); }
static ax_value unreduced_scatter(ax_value x) {
  return ax_unreduced_psum_scatter(ax_vary_unreduced_cast(x, "d", AX_UNREDUCED_SUM), "d", 0, true);
}

/* Member d sends its first d rows to member 0 and one row to member 1; they lie behind one another where they come. */
static ax_value ragged(ax_value x) {
  ax_value me = ax_axis_index("d"), zero = ax_mul(me, 0), starts[] = {zero, me, zero, zero},
           sizes[] = {me, ax_add(zero, 1), zero, zero};
  ax_value before = ax_div(ax_mul(me, ax_sub(me, 1)), 2), places[] = {before, me, zero, zero}; /* 0 + 1 + .. + (d - 1) */
  ax_value received[devices];
  for (int s = 0; s < devices; s++) /* from member s: s rows on member 0, one on member 1 */
    received[s] = ax_where(ax_eq(me, 0), ax_add(zero, s), ax_where(ax_eq(me, 1), ax_add(zero, 1), zero));
  return ax_ragged_all_to_all(x, ax_full(AX_F32, AX_DIMS(6), 0), ax_stack(AX_LIST(devices, starts), 0),
                              ax_stack(AX_LIST(devices, sizes), 0), ax_stack(AX_LIST(devices, places), 0),
                              ax_stack(AX_LIST(devices, received), 0), "d");
}

typedef struct example {
  const char *text;
  ax_value (*function)(ax_value x);
  int64_t elems; /* on each device */
  const char *from, *to; /* types along d */
} example;

static const example examples[] = {
    {"ax_psum(x, \"d\")", psum, 2, "V", "I"},
    {"ax_psum(x, \"d {0,2} {1,3}\")", psum_of_groups, 2, "V", "V"},
    {"ax_psum(x, \"d {0} {1,2,3}\")", psum_uneven, 2, "V", "V"},
    {"ax_psum(x, \"d,0\")", psum_positional, 2, "V", "I"},
    {"ax_pmean(x, \"d\")", pmean, 2, "V", "I"},
    {"ax_pmax(x, \"d\")", pmax, 2, "V", "I"},
    {"ax_pmin(x, \"d\")", pmin, 2, "V", "I"},
    {"ax_pargmax(x, \"d\")", pargmax, 2, "V", "I"},
    {"ax_pargmin(x, \"d\")", pargmin, 2, "V", "I"},
    {"ax_all_gather(x, \"d\", 0, true)", gather, 1, "V", "V"},
    {"ax_all_gather(x, \"d {0,2} {3,1}\", 0, true)", gather_groups, 2, "V", "V"},
    {"ax_all_gather_invariant(x, \"d\", 0, true)", gather_invariant, 1, "V", "I"},
    {"ax_all_gather_reduced(x, \"d\", 0, true)", gather_reduced, 1, "V", "R"},
    {"ax_psum_scatter(x, \"d\", 0, true)", scatter, 4, "V", "V"},
    {"ax_all_to_all(x, \"d\", 0, 0, true)", trade, 4, "V", "V"},
    {"ax_pswapaxes(x, \"d\", 0)", swap, 4, "V", "V"},
    {"ax_ragged_all_to_all(x, ..): d rows to device 0, one to device 1", ragged, 4, "V", "V"},
    {"ax_ppermute(x, \"d\", AX_PAIRS({0, 1}, {1, 3}))", permute, 2, "V", "V"},
    {"ax_pshift(x, \"d\", 1, true)", ring, 2, "V", "V"},
    {"ax_pshift(x, \"d\", -1, false)", line, 2, "V", "V"},
    {"ax_pshuffle(x, \"d\", AX_DIMS(2, 0, 3, 1))", shuffle, 2, "V", "V"},
    {"ax_pbroadcast(x, \"d\", 2)", broadcast, 2, "V", "V"},
    {"ax_precv(ax_psend(x, \"d\", AX_PAIRS({0, 3})), type, \"d\", AX_PAIRS({0, 3}))", message, 2, "V", "V"},
    {"ax_axis_index(\"d\")", member_number, 1, "", "V"},
    {"ax_unreduced_psum(x, \"d\")", unreduced, 2, "U", "I"},
    {"ax_unreduced_psum_scatter(x, \"d\", 0, true)", unreduced_scatter, 4, "U", "V"},
};

/* On each device; the result, one row a device. `state` is what its type says. */
static void body(const ax_value *in, ax_value *out, void *context) {
  const example *e = context;
  ax_value y = e->function(in[0]);
  ax_spread on = ax_typeof(y).spread;
  const char *state = on.varying != 0 ? "V" : on.reduced != 0 ? "R" : on.unreduced != 0 ? "U" : "I";
  if (state[0] != e->to[0]) ax_trace_fail("the result is typed otherwise than is printed");
  if (on.varying == 0) y = ax_pcast(y, "d", "varying"); /* to be seen on each device */
  out[0] = ax_expand_dims(ax_convert_element_type(y, AX_F32), 0);
}

static void print_row(const char *name, const float *x, int64_t elems) {
  printf("  %-7s", name);
  for (int64_t i = 0; i < devices * elems; i++) printf("%s%02g", i % elems == 0 ? " | " : " ", (double)x[i]);
  printf(" |\n");
}

int main(void) {
  ax_mesh mesh;
  ax_must(ax_mesh_parse("d=4", &mesh));
  for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
    const example *e = &examples[i];
    float x[devices * 4];
    for (int64_t k = 0; k < devices * e->elems; k++) x[k] = (float)(k / e->elems * 10 + k % e->elems);
    ax_host_array in = {.dtype = AX_F32, .rank = 1, .dims = {devices * e->elems}, .data = x}, out;
    ax_must(ax_apply(NULL, AX_SHARDED(&mesh, "d -> d", AX_CLOSURE(body, 1, 1, (void *)e)), &in, &out));
    printf("%s%s%s%s%s\n", e->text, e->from[0] != '\0' ? "    " : "    -> ", e->from, e->from[0] != '\0' ? " -> " : "", e->to);
    if (e->from[0] != '\0') print_row("before", x, e->elems);
    print_row("after", out.data, out.rank > 1 ? out.dims[1] : 1);
    ax_host_array_release(&out);
  }
  return 0;
}
