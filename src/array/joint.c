#include "array/joint.h"

#include "array/pending.h"
#include "array/runtime.h"

void ax_joint_enter(ax_joint *joint, ax_runtime *runtime, const ax_doing *doing) {
  ax_processes *p = runtime->executor.processes;
  *joint = (ax_joint){.processes = p != NULL && p->rule.processes > 1 ? p : NULL, .doing = *doing};
  if (joint->processes == NULL) return;
  joint->begun = ax_processes_begun(p);
  joint->runs = atomic_load(&p->runs);
  joint->failures = atomic_load(&p->failures);
}

void ax_joint_begin(ax_joint *joint, ax_runtime *runtime, bool is_joint, const ax_doing *doing) {
  const ax_processes *p = runtime->executor.processes;
  *joint = (ax_joint){.processes = NULL};
  if (!is_joint || p == NULL || p->rule.processes == 1) return;
  ax_pending_wait_together(runtime);
  ax_joint_enter(joint, runtime, doing);
}

static ax_status agree(const ax_joint *joint, ax_status status) {
  ax_doing doing = joint->doing;
  if (status != AX_OK) doing.check = 0;
  return ax_agree(joint->processes, &doing, status);
}

ax_status ax_joint_end(const ax_joint *joint, ax_status status) {
  if (joint->processes == NULL || ax_processes_begun(joint->processes) != joint->begun) return status;
  return agree(joint, status);
}

ax_status ax_joint_end_run(const ax_joint *joint, ax_status status) {
  ax_processes *p = joint->processes;
  if (p == NULL || atomic_load(&p->runs) != joint->runs || atomic_load(&p->failures) != joint->failures) return status;
  return agree(joint, status);
}

void ax_layout_text(ax_text *text, const ax_layout *layout) {
  ax_text_add(text, "%s", ax_type_string(&layout->type, NULL));
  if (layout->mesh.count == 0) return;
  ax_text_add(text, " over ");
  ax_mesh_text(text, &layout->mesh);
  ax_text_add(text, ", ");
  ax_spec_text(text, &layout->spec, &layout->mesh);
}
