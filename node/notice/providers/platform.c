/* platform - see platform.h. Facts: the vendors' documentation of their machines' DMI tables. */
#include "node/notice/providers/platform.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static void platform_read_line(const char *prefix, const char *path, char *ret_line, size_t size)
{
    char name[512];
    ssize_t got = -1;
    int fd;

    snprintf(name, sizeof name, "%s%s", prefix, path);
    fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) {
        got = read(fd, ret_line, size - 1);
        close(fd);
    }
    ret_line[got > 0 ? got : 0] = '\0';
    ret_line[strcspn(ret_line, "\n")] = '\0';
}

void platform_read(const char *sys_prefix, struct platform_facts *ret_facts)
{
    struct stat info;
    char name[512];

    memset(ret_facts, 0, sizeof *ret_facts);
    snprintf(name, sizeof name, "%s/sys/class/dmi/id", sys_prefix);
    ret_facts->dmi = stat(name, &info) == 0 && S_ISDIR(info.st_mode);
#define READ(path, field) \
    platform_read_line(sys_prefix, path, ret_facts->field, sizeof ret_facts->field)
    READ("/sys/class/dmi/id/sys_vendor", sys_vendor);
    READ("/sys/class/dmi/id/product_name", product_name);
    READ("/sys/class/dmi/id/chassis_asset_tag", chassis_asset_tag);
    READ("/sys/class/dmi/id/bios_version", bios_version);
    READ("/sys/hypervisor/uuid", hypervisor_uuid);
#undef READ
}

const char *platform_source(const struct platform_facts *facts)
{
    if (strcmp(facts->sys_vendor, "Amazon EC2") == 0 ||
        strcasestr(facts->bios_version, "amazon") != NULL ||
        strncasecmp(facts->hypervisor_uuid, "ec2", 3) == 0)
        return "ec2";
    if (strcmp(facts->product_name, "Google Compute Engine") == 0)
        return "gce";
    if (strcmp(facts->chassis_asset_tag, "7783-7084-3265-9085-8269-3286-77") == 0)
        return "azure";
    if (strcmp(facts->product_name, "Alibaba Cloud ECS") == 0)
        return "alibaba";
    if (strcmp(facts->sys_vendor, "Tencent Cloud") == 0)
        return "tencent";
    return NULL;
}
