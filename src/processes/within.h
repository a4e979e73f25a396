/* A transport inside one program: each "process" is a thread, or several, with a transport of its own. So everything that stands on
   transports is tested without MPI, under sanitizers too. */
#ifndef AX_PROCESSES_WITHIN_H
#define AX_PROCESSES_WITHIN_H

#include "processes/transport.h"

/* Makes the transports of `count` processes, which send to each other. Each is destroyed by its own process. Of long payloads every
   other one can be read where it lies, and of these every other one be seen there. A process lends two payloads at most at a time,
   and copies others. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_within_create(uint32_t count, ax_transport **out);
/* From here on, sends to process `gone` fail, and polls of the others say that it is gone. */
void ax_within_lose(ax_transport *transport, uint32_t gone);

#endif
