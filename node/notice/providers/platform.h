/* platform - which platform this machine belongs to, by its own DMI texts: no network, no waiting.
 * Owns: the table of DMI texts. The prefix of /sys is MUSTER_SYS_PREFIX, for tests and chroots. */
#ifndef NODE_NOTICE_PLATFORM_H
#define NODE_NOTICE_PLATFORM_H

#include <stdbool.h>

struct platform_facts { /* without the newline; "" = cannot be read */
    bool dmi;           /* /sys/class/dmi/id is there */
    char sys_vendor[128], product_name[128], chassis_asset_tag[128], bios_version[128],
        hypervisor_uuid[64];
};

void platform_read(const char *sys_prefix, struct platform_facts *ret_facts);
/* The source for that platform: "ec2", "gce", "azure", "alibaba", "tencent"; NULL: none of them.
 * Pure. */
const char *platform_source(const struct platform_facts *facts);

#endif
