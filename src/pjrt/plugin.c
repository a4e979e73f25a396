/* The plugin's one symbol: the table of its functions. What it has not is a function, too, which says so by its name. */
#include <string.h>

#include "hlo/dialect.h"
#include "pjrt/absent.h"
#include "pjrt/profile.h"

ax_pjrt_error *ax_pjrt_do_plugin_initialize(ax_pjrt_plugin_initialize_args *args) {
  (void)args;
  return NULL;
}

/* The versions that modules may have. */
ax_pjrt_error *ax_pjrt_do_plugin_attributes(ax_pjrt_plugin_attributes_args *args) {
  static const int64_t newest[] = {AX_HLO_MAJOR(AX_HLO_NEWEST), AX_HLO_MINOR(AX_HLO_NEWEST), 0},
                       oldest[] = {AX_HLO_MAJOR(AX_HLO_OLDEST), AX_HLO_MINOR(AX_HLO_OLDEST), 0};
#define VERSION(text, numbers) \
  {.struct_size = sizeof(ax_pjrt_named), .name = text, .name_length = sizeof text - 1, .kind = AX_PJRT_INTEGERS, .integers = numbers, .count = 3}
  static const ax_pjrt_named attributes[] = {VERSION("stablehlo_current_version", newest), VERSION("stablehlo_minimum_version", oldest)};
#undef VERSION
  args->items = attributes;
  args->count = sizeof attributes / sizeof attributes[0];
  return NULL;
}

#define AX_PJRT_ABSENT(name, known_as)                                                \
  ax_pjrt_error *ax_pjrt_do_##name(ax_pjrt_##name##_args *args) {                     \
    (void)args;                                                                       \
    return ax_pjrt_fail(AX_PJRT_UNIMPLEMENTED, "Axle's plugin has no %s", known_as); \
  }
AX_PJRT_ABSENT_FUNCTIONS(AX_PJRT_ABSENT)
#undef AX_PJRT_ABSENT

#define AX_PJRT_ENTRY(name, known_as) .name = ax_pjrt_do_##name,
static const ax_pjrt_api table = {
    .struct_size = sizeof table,
    .extensions = &ax_pjrt_profilers_extension.base,
    .version = {.struct_size = sizeof table.version, .major = AX_PJRT_MAJOR, .minor = AX_PJRT_MINOR},
    AX_PJRT_QUIET(AX_PJRT_ENTRY) AX_PJRT_FUNCTIONS(AX_PJRT_ENTRY)};
#undef AX_PJRT_ENTRY

__attribute__((visibility("default"))) const ax_pjrt_api *GetPjrtApi(void);
const ax_pjrt_api *GetPjrtApi(void) { return &table; }
