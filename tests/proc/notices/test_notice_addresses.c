/* Metadata services on their real addresses, in a network namespace of the test's own: nothing that
 * is sent here leaves the machine, and what is sent without being asked for is counted. Exit code
 * 77, with the reason, where none can be made. */
#include "tests/support/notice_services.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cmocka.h>

#define ADDRESS "169.254.169.254"
#define TOKEN "/latest/api/token"
#define SPOT "/latest/meta-data/spot/instance-action"
#define TTL "X-aws-ec2-metadata-token-ttl-seconds: "
#define LIMIT_MS 30000

static struct notice_fixture f;

static void ip(const char *command)
{
    char line[256];

    snprintf(line, sizeof line, "ip %s", command);
    if (system(line) != 0)
        fail_msg("%s", line);
}

/* No DMI: the directory has no sys. */
static int set_up(void **state)
{
    (void)state;
    notice_fixture_open(&f, NULL);
    setenv("MUSTER_SYS_PREFIX", f.directory, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    notice_fixture_close(&f);
    ip("addr flush dev lo scope global");
    ip("route flush dev v0");
    return 0;
}

static void serve(void)
{
    ip("addr add " ADDRESS "/32 dev lo");
    f.server = http_server_start_at(ADDRESS, 80);
}

static void serve_ec2(void)
{
    serve();
    http_server_on(f.server, "PUT", TOKEN,
                   (struct http_script){.headers = TTL "60\r\n", .body = "T", .times = 1});
    http_server_on(f.server, "PUT", TOKEN,
                   (struct http_script){.headers = TTL "21600\r\n", .body = "T"});
}

/* Packets ever sent in this namespace, to itself too. */
static int64_t packets(void)
{
    FILE *file = fopen("/proc/thread-self/net/dev", "r");
    int64_t all = 0, received, sent;
    char line[512];

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        const char *numbers = strchr(line, ':');

        if (numbers != NULL &&
            sscanf(numbers + 1, "%*d %" SCNd64 " %*d %*d %*d %*d %*d %*d %*d %" SCNd64, &received,
                   &sent) == 2)
            all += sent;
    }
    fclose(file);
    return all;
}

/* Nothing but the machine's own word says where: auto, its DMI, and the address that the vendor
 * documents. */
static void is_asked_there(const struct notice_service *service, const char *address,
                           const char *dmi_file, const char *dmi)
{
    char command[256];

    snprintf(command, sizeof command, "addr add %s/32 dev lo", address);
    ip(command);
    f.server = http_server_start_at(address, 80);
    f.service = service;
    f.pace.waits = NOTICE_PACE;
    service->ready(&f);
    notice_says_nothing(&f);
    snprintf(command, sizeof command,
             "mkdir -p '%s/sys/class/dmi/id' && echo '%s' >'%s/sys/class/dmi/id/%s'", f.directory,
             dmi, f.directory, dmi_file);
    assert_int_equal(system(command), 0);
    notice_fixture_watch(&f, "auto");
    notice_state(&f, "auto", SOURCE_HEALTHY, service->name, LIMIT_MS);
    notice_state(&f, service->name, SOURCE_HEALTHY, "", LIMIT_MS);
    notice_announces(&f, 100);
    assert_int_equal(notice_await(&f, LIMIT_MS).item.kind, service->kind);
    notice_state(&f, service->name, SOURCE_HEALTHY, "", LIMIT_MS);
}

static void gce_is_asked_on_its_own_address(void **state)
{
    (void)state;
    is_asked_there(&notice_service_gce, ADDRESS, "product_name", "Google Compute Engine");
}

static void ec2_is_asked_on_its_own_address(void **state)
{
    (void)state;
    is_asked_there(&notice_service_ec2, ADDRESS, "sys_vendor", "Amazon EC2");
}

static void azure_is_asked_on_its_own_address(void **state)
{
    (void)state;
    is_asked_there(&notice_service_azure, ADDRESS, "chassis_asset_tag",
                   "7783-7084-3265-9085-8269-3286-77");
}

static void alibaba_is_asked_on_its_own_address(void **state)
{
    (void)state;
    is_asked_there(&notice_service_alibaba, "100.100.100.200", "product_name", "Alibaba Cloud ECS");
}

/* By its name: this process has /etc/hosts for itself, as it has the network. */
static void tencent_is_asked_by_its_own_name(void **state)
{
    char path[96];
    FILE *hosts;

    (void)state;
    snprintf(path, sizeof path, "%s/hosts", f.directory);
    hosts = fopen(path, "w");
    assert_non_null(hosts);
    fprintf(hosts, "127.0.0.1 localhost\n169.254.0.23 metadata.tencentyun.com\n");
    fclose(hosts);
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount(path, "/etc/hosts", NULL, MS_BIND, NULL) != 0) {
        printf("skipped: no mount namespace can be made: %s\n", strerror(errno));
        skip();
    }
    is_asked_there(&notice_service_tencent, "169.254.0.23", "sys_vendor", "Tencent Cloud");
    umount2("/etc/hosts", MNT_DETACH);
}

static void with_nobody_there_it_is_absent(void **state)
{
    (void)state;
    notice_fixture_watch(&f, "ec2"); /* no route */
    notice_state(&f, "ec2", SOURCE_ABSENT, "", LIMIT_MS);
    watch_close(&f.watch, 5000);
    ip("addr add " ADDRESS "/32 dev lo"); /* refused */
    notice_fixture_watch(&f, "ec2");
    notice_state(&f, "ec2", SOURCE_ABSENT, "", LIMIT_MS);
}

static void auto_finds_ec2_by_its_answer(void **state)
{
    (void)state;
    serve_ec2();
    notice_fixture_watch(&f, "auto");
    notice_state(&f, "auto", SOURCE_HEALTHY, "ec2 answered", LIMIT_MS);
    notice_state(&f, "ec2", SOURCE_HEALTHY, "", LIMIT_MS);
}

/* Without a DMI, as in a container that hides it. */
static void is_found_by_its_answer(const struct notice_service *service)
{
    char text[64];

    serve();
    f.service = service;
    service->ready(&f);
    notice_says_nothing(&f);
    notice_fixture_watch(&f, "auto");
    snprintf(text, sizeof text, "%s answered", service->name);
    notice_state(&f, "auto", SOURCE_HEALTHY, text, LIMIT_MS);
    notice_state(&f, service->name, SOURCE_HEALTHY, "", LIMIT_MS);
    notice_none(&f);
}

static void auto_finds_gce_by_its_answer(void **state)
{
    (void)state;
    is_found_by_its_answer(&notice_service_gce);
}

static void auto_finds_azure_by_its_answer(void **state)
{
    (void)state;
    is_found_by_its_answer(&notice_service_azure);
}

/* A captive proxy, an OpenStack: something for everybody, no proof. */
static void auto_is_not_deceived_by_another_service(void **state)
{
    static const char *const paths[] = {TOKEN, "/computeMetadata/v1/instance/preempted",
                                        "/metadata/scheduledevents"};
    struct source_status status;
    size_t hits;

    (void)state;
    serve();
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        for (int put = 0; put < 2; put++)
            http_server_on(f.server, put ? "PUT" : "GET", paths[i],
                           (struct http_script){.body = "<html>Sign in</html>"});
    notice_fixture_watch(&f, "auto");
    status = notice_state(&f, "auto", SOURCE_ABSENT, "no cloud answered", LIMIT_MS);
    assert_in_range(status.retry_boot_ms - notice_clocks().boot_ms, 600000 - LIMIT_MS, 600000);
    assert_false(notice_status(&f, "ec2", &status));
    hits = http_server_hits(f.server, NULL);
    assert_in_range(hits, 1, 3);
}

/* Packets go out and nothing ever comes back. */
static void in_a_black_hole_open_does_not_wait_and_auto_gives_up_in_time(void **state)
{
    int64_t began, opened;

    (void)state;
    ip("route add " ADDRESS " dev v0 src 192.0.2.1");
    ip("neigh replace " ADDRESS " lladdr 02:00:00:00:00:01 dev v0");
    began = notice_clocks().boot_ms;
    notice_fixture_watch(&f, "auto,ec2");
    opened = notice_clocks().boot_ms;
    assert_in_range(opened - began, 0, 900); /* not even one connect */
    notice_state(&f, "auto", SOURCE_ABSENT, "no cloud answered", LIMIT_MS);
    assert_in_range(notice_clocks().boot_ms - opened, 900, LIMIT_MS);
    notice_state(&f, "ec2", SOURCE_ABSENT, "", LIMIT_MS);
}

static void machine_is(const char *vendor)
{
    char command[256];

    snprintf(command, sizeof command,
             "mkdir -p '%s/sys/class/dmi/id' && echo '%s' >'%s/sys/class/dmi/id/sys_vendor'",
             f.directory, vendor, f.directory);
    assert_int_equal(system(command), 0);
}

static void who_is_not_asked_for_sends_nothing(void **state)
{
    static const char *const lists[] = {"", "signal,callback", "file:/tmp/none,command:true",
                                        "auto"};
    int64_t before;

    (void)state;
    serve_ec2();
    machine_is("A workstation"); /* a DMI of no cloud: auto asks nobody */
    before = packets();
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        notice_fixture_watch(&f, lists[i]);
        if (strstr(lists[i], "command") != NULL)
            notice_state(&f, "command", SOURCE_HEALTHY, "", LIMIT_MS);
        if (strcmp(lists[i], "auto") == 0)
            notice_state(&f, "auto", SOURCE_ABSENT, "DMI names no cloud that is known", LIMIT_MS);
        watch_close(&f.watch, 5000);
    }
    assert_int_equal(packets(), before);
    assert_int_equal(http_server_hits(f.server, NULL), 0);
}

static void packets_are_counted(void **state)
{
    int64_t before = packets();

    (void)state;
    serve_ec2();
    notice_fixture_watch(&f, "ec2");
    notice_state(&f, "ec2", SOURCE_HEALTHY, "", LIMIT_MS);
    assert_true(packets() > before);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(gce_is_asked_on_its_own_address),
        CASE(ec2_is_asked_on_its_own_address),
        CASE(azure_is_asked_on_its_own_address),
        CASE(alibaba_is_asked_on_its_own_address),
        CASE(tencent_is_asked_by_its_own_name),
        CASE(with_nobody_there_it_is_absent),
        CASE(auto_finds_ec2_by_its_answer),
        CASE(auto_finds_gce_by_its_answer),
        CASE(auto_finds_azure_by_its_answer),
        CASE(auto_is_not_deceived_by_another_service),
        CASE(in_a_black_hole_open_does_not_wait_and_auto_gives_up_in_time),
        CASE(packets_are_counted),
        CASE(who_is_not_asked_for_sends_nothing),
    };

    if (unshare(CLONE_NEWNET) != 0) {
        printf("skipped: no network namespace can be made: %s\n", strerror(errno));
        return 77;
    }
    if (system("ip link set lo up && ip link add v0 type veth peer name v1 && ip link set v0 up && "
               "ip link set v1 up && ip addr add 192.0.2.1/32 dev v0 && "
               "sysctl -q -w net.ipv6.conf.all.disable_ipv6=1") != 0) {
        printf("skipped: the namespace has no veth devices\n");
        return 77;
    }
    return cmocka_run_group_tests_name("notice_addresses", tests, NULL, NULL);
}
