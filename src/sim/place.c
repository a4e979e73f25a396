/* Machines under meshes: digits, images, groups and routes. */
#include "sim/place.h"

#include <math.h>
#include <stdio.h>

/* --- Digits --- */

static ax_status refuse(const ax_cluster *machine, const ax_mesh *mesh, int64_t there) {
  const ax_mesh plain = ax_mesh_plain(mesh);
  ax_text axes = {0};
  ax_mesh_text(&axes, &plain);
  ax_status status =
      ax_error(AX_INVALID_ARGUMENT, "the mesh %s has %lld devices, but the machine \"%s\" has %lld",
               axes.data != NULL ? axes.data : "?", (long long)ax_mesh_devices(mesh), machine->name, (long long)there);
  ax_text_deinit(&axes);
  return status;
}

/* Digits of these sizes have been put down: their strides. */
static void set_strides(ax_sim_place *place) {
  place->all = 1;
  for (uint32_t d = place->count; d-- > 0;) {
    place->digit[d].stride = place->all;
    place->digit[d].fold = place->digit[d].size;
    place->all *= place->digit[d].size;
  }
}

/* The largest whole number whose power is at most n. */
static int64_t whole_root(int64_t n, uint32_t power) {
  int64_t root = (int64_t)(pow((double)n, 1.0 / power) + 1);
  while (pow((double)root, power) > (double)n) root--;
  return root;
}

/* Sides that are as near to each other as can be, of so many devices, the longest first. */
static void set_cube(ax_sim_place *place) {
  int64_t left = place->devices;
  for (uint32_t d = place->count; d-- > 0; left /= place->digit[d].size) {
    int64_t side = whole_root(left, d + 1);
    while (left % side != 0) side--;
    place->digit[d].size = side;
  }
}

/* One side for each axis of the mesh, and the last for all that are left. */
static int64_t wanted_side(const ax_mesh *mesh, uint32_t d, bool last) {
  int64_t side = d < mesh->count ? mesh->axis[d].size : 1;
  for (uint32_t a = d + 1; last && a < mesh->count; a++) side *= mesh->axis[a].size;
  return side;
}

static ax_status lay_torus(ax_sim_place *place) {
  const ax_cluster *m = place->machine;
  int64_t all = 1;
  place->count = m->rank;
  if (m->cube) set_cube(place);
  for (uint32_t d = 0; d < m->rank; d++) {
    const int64_t side = m->cube          ? place->digit[d].size
                         : m->side[0] > 0 ? m->side[d]
                                          : wanted_side(place->mesh, d, d == m->rank - 1);
    place->digit[d].size = side;
    if (!ax_mul_i64(all, side, &all) || all > INT32_MAX)
      return ax_error(AX_INVALID_ARGUMENT, "the machine \"%s\" has more than %d devices", m->name, INT32_MAX);
  }
  set_strides(place);
  place->foldable = place->all == place->devices;
  return place->all < place->devices ? refuse(m, place->mesh, place->all) : AX_OK;
}

/* Axes as they are, but for the one that goes on beyond a node: it is cut in two. False: it ends in the middle of one. */
static bool cut_at_nodes(ax_sim_place *place, int64_t per_node) {
  ax_sim_digit minor_first[AX_MAX_DIGITS];
  int64_t inside = 1; /* of a node */
  uint32_t count = 0;
  for (uint32_t a = place->mesh->count; a-- > 0;) {
    const int64_t size = place->mesh->axis[a].size, rest = per_node / inside;
    const int64_t inner = rest % size == 0 ? size : rest, outer = size / inner;
    if (rest % size != 0 && size % rest != 0) return false;
    if (inner > 1) minor_first[count++].size = inner;
    if (outer > 1) minor_first[count++].size = outer;
    inside *= inner;
  }
  for (uint32_t d = 0; d < count; d++) place->digit[d] = minor_first[count - 1 - d];
  place->count = count;
  return true;
}

static ax_status lay_nodes(ax_sim_place *place) {
  const ax_cluster *m = place->machine;
  const int64_t nodes = (place->devices + m->per_node - 1) / m->per_node;
  const int64_t per_node = place->devices < m->per_node ? place->devices : m->per_node;
  if (m->ports > 0 && nodes > m->ports) return refuse(m, place->mesh, m->ports * m->per_node);
  place->foldable = place->devices % per_node == 0 && cut_at_nodes(place, per_node);
  if (!place->foldable) {
    place->digit[0].size = place->devices;
    place->count = 1;
  }
  set_strides(place);
  return AX_OK;
}

static ax_status lay_switch(ax_sim_place *place) {
  for (uint32_t a = 0; a < place->mesh->count; a++) place->digit[place->count++].size = place->mesh->axis[a].size;
  if (place->machine->ports > 0 && place->devices > place->machine->ports)
    return refuse(place->machine, place->mesh, place->machine->ports);
  place->foldable = true;
  set_strides(place);
  return AX_OK;
}

ax_status ax_sim_place_make(const ax_cluster *machine, const ax_mesh *mesh, ax_sim_place *out) {
  *out = (ax_sim_place){.machine = machine, .mesh = mesh, .devices = ax_mesh_devices(mesh)};
  return machine->topology == AX_TOPOLOGY_TORUS    ? lay_torus(out)
         : machine->topology == AX_TOPOLOGY_SWITCH ? lay_switch(out)
                                                   : lay_nodes(out);
}

/* --- Images --- */

/* A digit says which of a node's devices it is, and not which node. */
static bool is_inside_node(const ax_sim_place *place, const ax_sim_digit *digit) {
  return place->machine->topology == AX_TOPOLOGY_NODES && digit->stride < place->machine->per_node;
}

/* Links of nodes are numbered by nodes, which must be there whole. */
void ax_sim_place_fold(ax_sim_place *place) {
  for (uint32_t d = 0; d < place->count && place->foldable; d++)
    if (!(place->machine->by_node && is_inside_node(place, &place->digit[d]))) place->digit[d].fold = 1;
}

int64_t ax_sim_place_images(const ax_sim_place *place) {
  int64_t images = 1;
  for (uint32_t d = 0; d < place->count; d++) images *= place->digit[d].fold;
  return images;
}

static int64_t value_of(const ax_sim_digit *digit, int64_t device) { return device / digit->stride % digit->size; }

int64_t ax_sim_place_image(const ax_sim_place *place, int64_t device) {
  int64_t image = 0;
  for (uint32_t d = 0; d < place->count; d++)
    image = image * place->digit[d].fold + value_of(&place->digit[d], device) % place->digit[d].fold;
  return image;
}

int64_t ax_sim_place_device(const ax_sim_place *place, int64_t image) {
  int64_t device = 0;
  for (uint32_t d = place->count; d-- > 0; image /= place->digit[d].fold)
    device += image % place->digit[d].fold * place->digit[d].stride;
  return device;
}

static int64_t lcm(int64_t a, int64_t b) {
  int64_t x = a, y = b;
  while (y != 0) {
    const int64_t rest = x % y;
    x = y;
    y = rest;
  }
  return a / x * b;
}

static void keep(ax_sim_place *place, const ax_sim_cycle *cycle, int64_t fold) {
  for (uint32_t d = 0; d < place->count && cycle->digit == AX_NONE; d++) place->digit[d].fold = place->digit[d].size;
  if (cycle->digit != AX_NONE) place->digit[cycle->digit].fold = lcm(place->digit[cycle->digit].fold, fold);
}

void ax_sim_place_keep_values(ax_sim_place *place, const ax_sim_cycle *cycle) { keep(place, cycle, cycle->unit * cycle->size); }

/* A cycle that comes round where its digit does is like it everywhere. */
void ax_sim_place_keep_moves(ax_sim_place *place, const ax_sim_cycle *cycle) {
  const bool comes_round = cycle->digit != AX_NONE && cycle->unit * cycle->size == place->digit[cycle->digit].size;
  keep(place, cycle, comes_round ? 1 : cycle->unit * cycle->size);
}

/* Whether a ring through it comes back as it goes on, so that devices two values apart are alike. */
static bool winds_round(const ax_sim_cycle *cycle) { return cycle->round && cycle->size % 2 == 0; }

/* The way in the lower cycles depends on whether a value is even, and where a step is on whether they are at their ends. */
void ax_sim_place_keep_winding(ax_sim_place *place, const ax_sim_group *group) {
  for (uint32_t i = 0; i < group->winding; i++) {
    const ax_sim_cycle *cycle = &group->cycle[group->wound[i]];
    keep(place, cycle, i == 0 && winds_round(cycle) ? 2 * cycle->unit : cycle->unit * cycle->size);
  }
}

/* --- Links --- */

enum { torus_ways = 2, switch_kinds = 2, node_kinds = 4 }; /* node_kinds: to and from the switch, to and from the network */

static uint32_t links_each(const ax_sim_place *place) {
  const ax_cluster *m = place->machine;
  return m->topology == AX_TOPOLOGY_TORUS                  ? torus_ways * m->rank
         : m->topology == AX_TOPOLOGY_NODES && !m->by_node ? node_kinds
                                                           : switch_kinds;
}

static int64_t image_nodes(const ax_sim_place *place) {
  return (ax_sim_place_images(place) + place->machine->per_node - 1) / place->machine->per_node;
}

int64_t ax_sim_place_links(const ax_sim_place *place) {
  const int64_t links = ax_sim_place_images(place) * links_each(place);
  return place->machine->by_node ? links + 2 * image_nodes(place) : links;
}

uint32_t ax_sim_place_kinds(const ax_sim_place *place) {
  return place->machine->topology == AX_TOPOLOGY_NODES ? node_kinds : links_each(place);
}

uint32_t ax_sim_place_kind(const ax_sim_place *place, int64_t link) {
  const int64_t devices = ax_sim_place_images(place) * links_each(place);
  return link < devices ? (uint32_t)(link % links_each(place)) : switch_kinds + (uint32_t)(link - devices) % 2;
}

static bool is_network(const ax_sim_place *place, uint32_t kind) {
  return place->machine->topology == AX_TOPOLOGY_NODES && kind >= switch_kinds;
}

const ax_sim_wire *ax_sim_place_wire(const ax_sim_place *place, int64_t link) {
  return is_network(place, ax_sim_place_kind(place, link)) ? &place->machine->network : &place->machine->wire;
}

void ax_sim_place_describe(const ax_sim_place *place, uint32_t kind, ax_simulated_link *out) {
  static const char *const names[] = {"to the switch", "from the switch", "to the network", "from the network"};
  const ax_cluster *m = place->machine;
  const bool network = is_network(place, kind), torus = m->topology == AX_TOPOLOGY_TORUS;
  *out = (ax_simulated_link){.count = place->devices, .bandwidth = network ? m->network.bandwidth : m->wire.bandwidth};
  if (network && m->by_node) out->count = (place->devices + m->per_node - 1) / m->per_node;
  if (torus) out->count = place->all;
  if (torus) snprintf(out->name, sizeof out->name, "dimension %u, %s", kind / torus_ways, kind % torus_ways == 0 ? "up" : "down");
  else snprintf(out->name, sizeof out->name, "%s", names[kind]);
}

void ax_sim_place_topology(const ax_sim_place *place, ax_text *text) {
  const ax_cluster *m = place->machine;
  if (m->topology == AX_TOPOLOGY_SWITCH) ax_text_add(text, "a switch");
  if (m->topology == AX_TOPOLOGY_NODES) {
    const int64_t nodes = (place->devices + m->per_node - 1) / m->per_node;
    ax_text_add(text, "%lld node%s of %lld", (long long)nodes, nodes == 1 ? "" : "s", (long long)m->per_node);
  }
  for (uint32_t d = 0; m->topology == AX_TOPOLOGY_TORUS && d < m->rank; d++)
    ax_text_add(text, "%s%lld", d == 0 ? "torus " : " x ", (long long)place->digit[d].size);
}

/* --- Groups --- */

/* Finds the part of the ids from `stride` to `end` that lies in a digit. False: neither is a part of the other. */
static bool meets(const ax_sim_digit *digit, int64_t stride, int64_t end, ax_sim_cycle *out) {
  const int64_t low = stride > digit->stride ? stride : digit->stride, high = ax_least(end, digit->stride * digit->size);
  *out = (ax_sim_cycle){.size = 1};
  if (low >= high) return true;
  *out = (ax_sim_cycle){.size = high / low, .stride = low, .unit = low / digit->stride};
  return high % low == 0 && low % digit->stride == 0 && low % stride == 0 && digit->stride * digit->size % high == 0 &&
         end % high == 0;
}

/* Neighbours in a digit are one cycle. */
static void add_cycle(ax_sim_group *group, const ax_sim_cycle *cycle) {
  ax_sim_cycle *last = group->count > 0 ? &group->cycle[group->count - 1] : NULL;
  if (cycle->size == 1) return;
  group->members *= cycle->size;
  if (last == NULL || last->digit != cycle->digit || cycle->digit == AX_NONE || last->stride != cycle->stride * cycle->size) {
    group->cycle[group->count++] = *cycle;
    return;
  }
  last->size *= cycle->size;
  last->stride = cycle->stride;
  last->unit = cycle->unit;
}

static void add_axis(const ax_sim_place *place, int64_t stride, int64_t size, ax_sim_group *group) {
  ax_sim_cycle cycle;
  bool whole = place->foldable;
  for (uint32_t d = 0; d < place->count && whole; d++) whole = meets(&place->digit[d], stride, stride * size, &cycle);
  if (!whole) add_cycle(group, &(ax_sim_cycle){.size = size, .stride = stride, .digit = AX_NONE});
  for (uint32_t d = 0; d < place->count && whole; d++) {
    (void)meets(&place->digit[d], stride, stride * size, &cycle);
    cycle.digit = d;
    add_cycle(group, &cycle);
  }
}

/* Whether a ring should rather go along the first cycle last: if that comes round, and by its longer steps. */
static bool is_slower(const ax_sim_cycle *a, const ax_sim_cycle *b) {
  if (winds_round(a) != winds_round(b)) return winds_round(a);
  return a->unit > b->unit;
}

/* The cycle that is major is one that comes round, if there is one; the others follow by the length of their steps. */
static void wind(const ax_sim_place *place, ax_sim_group *group) {
  bool along = place->machine->topology == AX_TOPOLOGY_TORUS && group->count > 1;
  for (uint32_t p = 0; p < group->count; p++) {
    ax_sim_cycle *cycle = &group->cycle[p];
    along = along && cycle->digit != AX_NONE;
    cycle->round = cycle->digit != AX_NONE && cycle->unit * cycle->size == place->digit[cycle->digit].size;
  }
  for (uint32_t p = 0; p < group->count && along; p++) {
    uint32_t at = group->winding++;
    for (; at > 0 && is_slower(&group->cycle[p], &group->cycle[group->wound[at - 1]]); at--) group->wound[at] = group->wound[at - 1];
    group->wound[at] = p;
  }
}

void ax_sim_group_make(const ax_sim_place *place, const ax_axes *names, ax_sim_group *out) {
  *out = (ax_sim_group){.members = 1};
  for (uint32_t i = 0; i < names->count; i++) {
    const uint32_t axis = (uint32_t)ax_mesh_find(place->mesh, names->name[i]);
    int64_t stride = 1;
    for (uint32_t a = axis + 1; a < place->mesh->count; a++) stride *= place->mesh->axis[a].size;
    add_axis(place, stride, place->mesh->axis[axis].size, out);
  }
  wind(place, out);
}

int64_t ax_sim_cycle_value(const ax_sim_cycle *cycle, int64_t device) { return device / cycle->stride % cycle->size; }

int64_t ax_sim_group_member(const ax_sim_group *group, int64_t device) {
  int64_t member = 0;
  for (uint32_t p = 0; p < group->count; p++) member = member * group->cycle[p].size + ax_sim_cycle_value(&group->cycle[p], device);
  return member;
}

int64_t ax_sim_group_device(const ax_sim_group *group, int64_t device, int64_t member) {
  for (uint32_t p = group->count; p-- > 0; member /= group->cycle[p].size)
    device += (member % group->cycle[p].size - ax_sim_cycle_value(&group->cycle[p], device)) * group->cycle[p].stride;
  return device;
}

static int64_t to_value(const ax_sim_cycle *cycle, int64_t device, int64_t value) {
  return device + (value - ax_sim_cycle_value(cycle, device)) * cycle->stride;
}

/* The last device of the winding ring, or the first. */
static int64_t winding_end(const ax_sim_group *group, int64_t device, bool last) {
  bool up = true;
  for (uint32_t i = 0; i < group->winding; i++) {
    const ax_sim_cycle *cycle = &group->cycle[group->wound[i]];
    const int64_t value = up && last ? cycle->size - 1 : 0;
    device = to_value(cycle, device, value);
    up = up == (value % 2 == 0);
  }
  return device;
}

int64_t ax_sim_group_winding_next(const ax_sim_group *group, int64_t device, bool back) {
  int64_t sum = 0; /* of the values before a cycle: where it is odd, the cycle is gone through downwards */
  for (uint32_t i = 0; i < group->winding; i++) sum += ax_sim_cycle_value(&group->cycle[group->wound[i]], device);
  for (uint32_t i = group->winding; i-- > 0;) {
    const ax_sim_cycle *cycle = &group->cycle[group->wound[i]];
    const int64_t value = ax_sim_cycle_value(cycle, device);
    sum -= value;
    const int64_t next = value + ((sum % 2 == 0) != back ? 1 : -1);
    if (next >= 0 && next < cycle->size) return to_value(cycle, device, next);
  }
  return winding_end(group, device, back);
}

/* --- Routes --- */

static ax_status add_hop(ax_sim_route *route, int64_t link, double weight) {
  AX_TRY(ax_grow(&route->hops, sizeof route->hops[0], route->count, 1, &route->capacity));
  route->hops[route->count++] = (ax_sim_hop){(uint32_t)link, weight};
  return AX_OK;
}

/* `steps` hops along dimension d, the first from `device`, one way: over as many links as the dimension has images, each as often
   as it is come to. */
static ax_status go(const ax_sim_place *place, uint32_t d, int64_t device, int64_t steps, bool up, double weight,
                    ax_sim_route *route) {
  const ax_sim_digit *digit = &place->digit[d];
  int64_t value = value_of(digit, device);
  const int64_t base = device - value * digit->stride;
  for (int64_t i = 0; i < ax_least(steps, digit->fold); i++) {
    const int64_t times = steps / digit->fold + (i < steps % digit->fold);
    const int64_t image = ax_sim_place_image(place, base + value * digit->stride);
    AX_TRY(add_hop(route, image * links_each(place) + torus_ways * d + !up, weight * (double)times));
    value = up ? (value + 1) % digit->size : (value + digit->size - 1) % digit->size;
  }
  return AX_OK;
}

static ax_status find_on_torus(const ax_sim_place *place, int64_t from, int64_t to, ax_sim_route *route) {
  int64_t hops = 0;
  for (uint32_t d = 0; d < place->count; d++) {
    const ax_sim_digit *digit = &place->digit[d];
    const int64_t up = (value_of(digit, to) - value_of(digit, from) + digit->size) % digit->size, down = digit->size - up;
    const bool both = up == down && digit->size > 2;
    if (up == 0) continue;
    if (up <= down) AX_TRY(go(place, d, from, up, true, both ? 0.5 : 1, route));
    if (down < up || both) AX_TRY(go(place, d, from, down, false, both ? 0.5 : 1, route));
    hops += ax_least(up, down);
    from += (value_of(digit, to) - value_of(digit, from)) * digit->stride;
  }
  route->latency = (double)hops * place->machine->wire.latency;
  route->overhead = place->machine->wire.overhead;
  return AX_OK;
}

static ax_status find_between(const ax_sim_wire *wire, int64_t up, int64_t down, ax_sim_route *route) {
  route->latency = wire->latency;
  route->overhead = wire->overhead;
  AX_TRY(add_hop(route, up, 1));
  return add_hop(route, down, 1);
}

double ax_sim_place_overhead(const ax_sim_place *place, int64_t from, int64_t to) {
  const ax_cluster *m = place->machine;
  return m->topology == AX_TOPOLOGY_NODES && from / m->per_node != to / m->per_node ? m->network.overhead : m->wire.overhead;
}

double ax_sim_place_besides(const ax_sim_place *place, int64_t from, int64_t to, double bytes) {
  const ax_cluster *m = place->machine;
  const ax_sim_wire *wire = &m->network;
  if (m->topology != AX_TOPOLOGY_NODES || from / m->per_node == to / m->per_node) return 0;
  if (bytes > wire->short_bytes) return wire->handshake;
  const double slower = wire->short_bandwidth > 0 ? bytes / wire->short_bandwidth - bytes / wire->bandwidth : 0;
  return slower > 0 ? slower : 0;
}

/* The link of an image to the switch, or to the network between nodes; the one that comes from there is the next. */
static int64_t first_link(const ax_sim_place *place, int64_t image, bool between) {
  const int64_t each = links_each(place);
  if (!between) return image * each;
  if (!place->machine->by_node) return image * each + switch_kinds;
  return ax_sim_place_images(place) * each + image / place->machine->per_node * 2; /* images of a node stand together */
}

ax_status ax_sim_route_find(const ax_sim_place *place, int64_t from, int64_t to, ax_sim_route *route) {
  const ax_cluster *m = place->machine;
  route->count = 0;
  if (m->topology == AX_TOPOLOGY_TORUS) return find_on_torus(place, from, to, route);
  const bool between = m->topology == AX_TOPOLOGY_NODES && from / m->per_node != to / m->per_node;
  return find_between(between ? &m->network : &m->wire, first_link(place, ax_sim_place_image(place, from), between),
                      first_link(place, ax_sim_place_image(place, to), between) + 1, route);
}

ax_status ax_sim_route_add_switch(const ax_sim_place *place, int64_t device, bool between, double bytes, double back,
                                  ax_sim_route *route) {
  const ax_sim_wire *wire = between ? &place->machine->network : &place->machine->wire;
  const int64_t link = first_link(place, ax_sim_place_image(place, device), between);
  route->latency = wire->latency;
  route->overhead = wire->overhead;
  AX_TRY(add_hop(route, link, bytes));
  return add_hop(route, link + 1, back);
}

void ax_sim_route_deinit(ax_sim_route *route) {
  ax_free(route->hops);
  *route = (ax_sim_route){0};
}
