/* contents - muster_checkpoint_*: checks the arguments, then calls down to node/shard. */
#include "client/node/options_take.h"
#include "node/link_key.h"
#include "node/shard/shard_contents.h"
#include "schema/error.h"

/* signer, ret_interrupt: the memory that *ret_of borrows. */
static enum muster_status contents_take(const char *directory,
                                        const struct muster_read_options *options,
                                        char signer[SIGNER_MAX + 1],
                                        struct interrupt *ret_interrupt,
                                        struct shard_contents *ret_of, struct muster_error *err)
{
    struct muster_read_options own = MUSTER_READ_OPTIONS_INIT;
    enum muster_status status = options != NULL ? read_options_take(options, &own, err) : MUSTER_OK;

    if (status == MUSTER_OK && (directory == NULL || directory[0] == '\0'))
        return error_set(err, MUSTER_E_ARGUMENT,
                         "muster_checkpoint_read: directory is missing; give a checkpoint's path, "
                         "as `muster checkpoints` shows it");
    if (status == MUSTER_OK && own.rank < -1)
        return error_set(err, MUSTER_E_ARGUMENT,
                         "muster_checkpoint_read: rank is %d; give a rank, or -1 for all",
                         own.rank);
    if (status == MUSTER_OK)
        status = link_key_signer(signer, err);
    *ret_interrupt = (struct interrupt){.ask = own.interrupted_fn, .arg = own.arg};
    *ret_of = (struct shard_contents){.checkpoint_path = directory,
                                      .signer = signer[0] != '\0' ? signer : NULL,
                                      .interrupt = ret_interrupt,
                                      .rank = own.rank};
    return status;
}

enum muster_status muster_checkpoint_metadata(const char *directory,
                                              const struct muster_read_options *options,
                                              char **ret_json, struct muster_error *ret_error)
{
    char signer[SIGNER_MAX + 1] = "";
    struct interrupt interrupt;
    struct shard_contents of;
    enum muster_status status =
        contents_take(directory, options, signer, &interrupt, &of, ret_error);

    if (status == MUSTER_OK && ret_json == NULL)
        return error_set(ret_error, MUSTER_E_ARGUMENT,
                         "muster_checkpoint_metadata: ret_json is NULL; give it an address");
    return status == MUSTER_OK ? shard_contents_text(&of, ret_json, ret_error) : status;
}

enum muster_status muster_checkpoint_read(const char *directory,
                                          const struct muster_read_options *options,
                                          muster_state_t *state, struct muster_error *ret_error)
{
    char signer[SIGNER_MAX + 1] = "";
    struct interrupt interrupt;
    struct shard_contents of;
    enum muster_status status =
        contents_take(directory, options, signer, &interrupt, &of, ret_error);

    if (status == MUSTER_OK && state == NULL)
        return error_set(ret_error, MUSTER_E_ARGUMENT,
                         "muster_checkpoint_read: state is NULL; create one with "
                         "muster_state_create, and add what is to be read");
    return status == MUSTER_OK ? shard_contents_read(&of, state, ret_error) : status;
}
