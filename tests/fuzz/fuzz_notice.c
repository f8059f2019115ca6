/* What metadata services answer: the first byte says which parser reads it, the second a few things
 * about the clock and what is remembered, an empty line parts the headers from the body. Whatever
 * comes: no notice without PARSE_OK, one that is told has a key, a kind, printable text and a time
 * that is none or not before now; what is garbage has a reason. */
#include "node/notice/providers/alibaba.h"
#include "node/notice/providers/azure.h"
#include "node/notice/providers/ec2.h"
#include "node/notice/providers/gce.h"
#include "node/notice/providers/tencent.h"
#include "tests/fuzz/fuzz.h"

static const struct provider *const providers[] = {&provider_ec2, &provider_gce, &provider_azure,
                                                   &provider_alibaba, &provider_tencent};

static const struct provider_path *choose(unsigned choice, const struct provider **ret_provider)
{
    size_t count = 0;

    for (size_t i = 0; i < sizeof providers / sizeof *providers; i++)
        count += providers[i]->path_count;
    choice %= (unsigned)count;
    for (size_t i = 0;; i++) {
        *ret_provider = providers[i];
        if (choice < providers[i]->path_count)
            return &providers[i]->paths[choice];
        choice -= (unsigned)providers[i]->path_count;
    }
}

static void check_text(const char *text, size_t most)
{
    must(strlen(text) <= most);
    for (; *text != '\0'; text++)
        must(*text >= ' ' && *text <= '~');
}

static void check_set(const struct notice_set *set, const struct notice_now *now)
{
    must(set->count <= NOTICE_SET_MAX);
    for (size_t i = 0; i < set->count; i++) {
        const struct notice_item *item = &set->items[i];

        must(item->key[0] != '\0');
        check_text(item->key, NOTICE_KEY_MAX);
        check_text(item->text, NOTICE_TEXT_MAX);
        must(item->kind > NOTICE_NONE && item->kind < NOTICE_KIND_COUNT);
        must(item->deadline_boot_ms == -1 || item->deadline_boot_ms >= now->boot_ms);
        for (size_t k = 0; k < i; k++)
            must(strcmp(set->items[k].key, item->key) != 0);
    }
}

/* As a service's first answer to that path: headers, retry and state are provider.c's. */
static void whole(const struct provider *provider, const struct provider_path *path,
                  const struct http_reply *reply, const struct notice_now *now)
{
    struct provider_run run;
    struct http_request *request = malloc(sizeof *request);
    struct notice_set set;
    struct source_status status = {0};
    unsigned topic;

    must(request != NULL && provider_init(&run, provider, NULL, 1, now->boot_ms));
    (void)provider_take(&run, (unsigned)(path - provider->paths), reply, now, &topic, &set);
    provider_status(&run, &status);
    must(status.state < SOURCE_STATE_COUNT && status.state != SOURCE_OFF);
    must(status.state != SOURCE_DEGRADED || status.text[0] != '\0');
    must(provider_wakeup_boot_ms(&run) >= now->boot_ms);
    for (int i = 0; i < PROVIDER_PATHS_MAX + 1; i++)
        (void)provider_next(&run, now->boot_ms + PROVIDER_BACKOFF_MAX_MS * 2, request, &topic);
    free(request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const memories[] = {"", "N-", "NA", "vmss_3"};
    struct bytes in = {data, size};
    const struct provider *provider;
    const struct provider_path *path = choose(take(&in), &provider);
    unsigned choices = take(&in);
    struct notice_now now = {5000000, (choices & 16) != 0 ? 0 : INT64_C(1587748304000)};
    char memory[PROVIDER_MEMORY_MAX + 1], why[SOURCE_TEXT_MAX + 1] = "";
    const struct provider_context context = {.now = now, .memory = memory, .why = why};
    struct notice_set set = {.count = 0};
    struct http_reply reply = {.result = HTTP_ANSWERED, .status = 200};
    char *text = malloc(in.left + 1), *parting;
    enum parse_result result;

    must(text != NULL);
    memcpy(text, in.at, in.left);
    text[in.left] = '\0';
    parting = strstr(text, "\n\n");
    reply.headers = "";
    reply.body = text;
    reply.size = in.left;
    if (parting != NULL) {
        parting[1] = '\0';
        reply.headers = text;
        reply.body = parting + 2;
        reply.size = in.left - (size_t)(parting + 2 - text);
    }
    snprintf(memory, sizeof memory, "%s", memories[choices % 4]);
    result = path->parse(&reply, &context, &set);
    must(result == PARSE_OK || result == PARSE_GARBAGE || result == PARSE_FOREIGN);
    must(result != PARSE_GARBAGE || why[0] != '\0');
    check_text(memory, PROVIDER_MEMORY_MAX);
    if (result == PARSE_OK)
        check_set(&set, &now);
    whole(provider, path, &reply, &now);
    free(text);
    return 0;
}
