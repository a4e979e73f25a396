/* Which findings are told to people. */
#ifndef AX_CHECK_TOLD_H
#define AX_CHECK_TOLD_H

#include "check/finding.h"

/* An agent with a fault stops. Findings that may only follow from this are not told beside it. */
bool ax_finding_follows_from_fault(const ax_act_finding *finding);
/* Whether two findings tell the same of different devices. */
bool ax_findings_alike(const ax_act_finding *a, const ax_act_finding *b);

#endif
