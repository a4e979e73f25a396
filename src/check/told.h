/* Which findings are told to people. */
#ifndef AX_CHECK_TOLD_H
#define AX_CHECK_TOLD_H

#include "check/finding.h"
#include "check/watch.h"

/* Whether it comes first, as others may follow from it: an agent with a fault stops, and a copy that is not awaited is under way
   when its device ends. */
bool ax_finding_is_cause(const ax_act_finding *finding);
/* Whether the finding may only follow from such a one of them: then it is not told beside it. */
AX_MUST_USE ax_status ax_finding_follows(ax_watch *watch, const ax_act_findings *all, const ax_act_finding *finding, bool *out);
/* Whether two findings tell the same of different devices. */
bool ax_findings_alike(const ax_act_finding *a, const ax_act_finding *b);

#endif
