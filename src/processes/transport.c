#include "processes/transport.h"

#include "base/base.h"

void ax_delivery_free(ax_delivery *delivery) {
  if (delivery == NULL) return;
  ax_free(delivery->payload);
  ax_free(delivery);
}
