/* notice_services - the clouds' metadata services as their documentation has them: how each answers
 * when all is well, and how it announces an end. */
#ifndef TESTS_SUPPORT_NOTICE_SERVICES_H
#define TESTS_SUPPORT_NOTICE_SERVICES_H

#include "tests/support/notice_traps.h"

#define NOTICE_TOKEN "AQAEALKd==" /* where tokens are given, this one */

extern const struct notice_service notice_service_gce, notice_service_ec2, notice_service_azure,
    notice_service_alibaba, notice_service_tencent;

/* Azure's answer with one event. resources: as JSON, without the brackets. Good until the next
 * call. */
const char *notice_azure_events(const char *type, const char *status, const char *resources,
                                const char *before);

#endif
