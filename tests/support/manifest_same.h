/* manifest_same - whether two manifests are of one checkpoint. */
#ifndef TESTS_SUPPORT_MANIFEST_SAME_H
#define TESTS_SUPPORT_MANIFEST_SAME_H

#include "schema/manifest/manifest.h"

/* Same job, round and shards, byte for byte: the same checkpoint, whoever wrote the text. */
bool manifest_same_checkpoint(const struct manifest *a, const struct manifest *b);

#endif
