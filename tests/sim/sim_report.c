/* sim_report - what was met, as text. */
#include "tests/sim/sim.h"

#include <inttypes.h>

static const char *const fault_names[FAULT_COUNT] = {
    [FAULT_NOTHING] = "none",
    [FAULT_NODE_CRASH] = "node crash",
    [FAULT_NODE_FREEZE] = "node freeze",
    [FAULT_THREAD_STUCK] = "stuck training thread",
    [FAULT_STEP_FAILS] = "step fails",
    [FAULT_SAVE_FAILS] = "save fails",
    [FAULT_SAVE_SLOW] = "slow saves",
    [FAULT_SAVE_HANGS] = "saves hang",
    [FAULT_RESTORE_FAILS] = "restore fails",
    [FAULT_MANIFEST_FAILS] = "manifest fails",
    [FAULT_BROKER_IDLE] = "broker crash, idle",
    [FAULT_BROKER_BEFORE_COMMIT] = "broker crash before the commit",
    [FAULT_BROKER_AFTER_COMMIT] = "broker crash after the commit",
    [FAULT_BROKER_BETWEEN_SENDS] = "broker crash between sends",
    [FAULT_BROKER_REBOOT] = "broker's machine reboots",
    [FAULT_BROKER_FREEZE] = "broker freeze",
    [FAULT_DATABASE_OLD] = "database restored from a copy",
    [FAULT_DISK_FULL] = "disk full",
    [FAULT_PUB_DROPS_ALL] = "PUB drops all",
    [FAULT_PUB_DROPS_SOME] = "PUB drops some",
    [FAULT_PUB_STALLS] = "PUB stalls",
    [FAULT_CUT_NODE] = "node cut off",
    [FAULT_CUT_ALL] = "all cut off",
    [FAULT_STALL_UP] = "one-way partition, up",
    [FAULT_STALL_DOWN] = "one-way partition, down",
    [FAULT_STALL_BOTH] = "two-way partition",
    [FAULT_NOTICE] = "notice",
    [FAULT_NOTICE_SHORT] = "notice, short",
    [FAULT_NOTICE_ALL] = "notices on all ranks",
    [FAULT_NOTICE_RANK_0] = "notice on rank 0",
    [FAULT_NOTICE_EARLIER] = "notice, then an earlier one",
    [FAULT_NOTICE_WITHDRAWN] = "notice, withdrawn",
    [FAULT_NOTICE_TOOL] = "notice by a tool",
    [FAULT_OPERATOR_SAVE] = "operator save",
    [FAULT_TOOL_ASKS] = "a tool asks",
    [FAULT_WALL_JUMP] = "wall clock jump",
    [FAULT_GONE_WRONG] = "a living process said to be gone",
    [FAULT_TWIN] = "second process for a rank",
    [FAULT_SAVE_LONG] = "saves of minutes",
    [FAULT_DISK_SLOW] = "disk slow",
    [FAULT_RELAY_DIES] = "relay dies",
    [FAULT_RELAY_STALLS] = "relay stands still",
    [FAULT_HOST_CUT] = "power cut of a host",
    [FAULT_LOG_CUT] = "active broker cut off from the log",
    [FAULT_LOG_SLOW] = "log slow",
    [FAULT_LOG_DOUBT] = "log's answer lost",
    [FAULT_HAND_OVER] = "hand-over",
    [FAULT_DELETE_FAILS] = "deletion fails",
    [FAULT_HAND_DIES] = "death in a deletion",
    [FAULT_HAND_FREEZES] = "freeze in a deletion",
    [FAULT_BROKER_IN_DELETION] = "broker crash at a deletion",
    [FAULT_DATABASE_LOST] = "database lost",
    [FAULT_UP_LOST] = "frame lost, up",
    [FAULT_UP_TWICE] = "frame twice, up",
    [FAULT_UP_LATE] = "frame overtaken, up",
    [FAULT_DOWN_LOST] = "frame lost, down",
    [FAULT_DOWN_TWICE] = "frame twice, down",
    [FAULT_DOWN_LATE] = "frame overtaken, down",
    [FAULT_PUB_TWICE] = "event twice",
    [FAULT_PUB_LATE] = "event overtaken",
    [FAULT_STORE_IO] = "database, EIO",
    [FAULT_STORE_TORN] = "database, torn write",
    [FAULT_STORE_SYNC] = "database, sync fails",
    [FAULT_STORE_FULL] = "database, no room",
    [FAULT_STORE_KILL] = "database, killed in a call",
    [FAULT_STORE_CUT] = "database, power cut in a call",
};

static const char *const moment_names[MOMENT_COUNT] = {
    [MOMENT_JOINING] = "before the join", [MOMENT_STARTUP] = "during startup",
    [MOMENT_STEP] = "in a step",          [MOMENT_LAST_STEP] = "in the last step",
    [MOMENT_SAVE] = "in a save",          [MOMENT_LEAVING] = "while it leaves",
};

const char *sim_moment_name(unsigned moment)
{
    return moment < MOMENT_COUNT ? moment_names[moment] : "?";
}

static const char *const plan_words[PLANNED_COUNT] = {
    [PLANNED_ASKED] = "at once: notice",
    [PLANNED_UNMEASURED] = "no save was measured yet",
    [PLANNED_PASSED] = "that was now already",
    [PLANNED_LATE] = "before the deadline of notice",
    [PLANNED_NO_MORE] = "failed or was lost while the job trained on",
    [PLANNED_BEFORE] = "came later",
};

const char *sim_plan_words(unsigned why)
{
    return why < PLANNED_COUNT ? plan_words[why] : "?";
}

const char *sim_fault_name(unsigned fault)
{
    return fault < FAULT_COUNT ? fault_names[fault] : "?";
}

static const char *const reason_words[REASON_COUNT] = {
    [REASON_SHARDED_LOST] = "was lost, and a sharded checkpoint needs every rank",
    [REASON_SHARDED_FINISHED] = "finished, and a sharded checkpoint needs every rank",
    [REASON_SHARDED_FAILED] = "failed its step, and a sharded checkpoint needs every rank",
    [REASON_SHARDED_LEFT] = "left, and a sharded checkpoint needs every rank",
    [REASON_NOBODY] = "no rank is left that could save",
    [REASON_FREEZE] = "did not answer the freeze",
    [REASON_WAY] = "did not reach step",
    [REASON_SAVE_SLOW] = "did not finish its save",
    [REASON_MARGIN_REPORT] = "had not reported",
    [REASON_MARGIN_SAVE] = "had not saved",
    [REASON_LOST] = "was lost",
    [REASON_FAILED] = "failed its step",
    [REASON_FINISHED] = "finished before the save",
    [REASON_LEFT] = "left before the save",
    [REASON_BEYOND] = "past the save step",
    [REASON_PAST] = "had begun step",
    [REASON_BROKEN_OFF] = "was broken off because of rank",
    [REASON_SAVE_FAILED] = "could not save",
    [REASON_RESTART] = "the broker was restarted before a step was decided",
    [REASON_NEXT_GENERATION] = "the next generation was opened",
    [REASON_UNREACHABLE] = "stand at different steps",
    [REASON_OLDER] = "was restored from an older copy",
};

const char *sim_reason_words(unsigned reason)
{
    return reason < REASON_COUNT ? reason_words[reason] : "?";
}

static void print_moves(const struct sim_stats *s, FILE *out)
{
    fprintf(out, "\nmoves:");
    for (unsigned from = 0; from < ROUND_STATE_COUNT; from++)
        for (unsigned to = 0; to < ROUND_STATE_COUNT; to++)
            if (s->moves[from][to] > 0)
                fprintf(out, " %s->%s %" PRIu64, wire_round_state_name(from),
                        wire_round_state_name(to), s->moves[from][to]);
    fprintf(out, "\nreasons:");
    for (unsigned i = 0; i < REASON_COUNT; i++)
        fprintf(out, "%s '%s' %" PRIu64, i > 0 ? "," : "", reason_words[i], s->reasons[i]);
}

static void print_worlds(const struct sim_stats *s, FILE *out)
{
    fprintf(out,
            "\nworlds of several jobs %" PRIu64 ", uneven loops %" PRIu64 ", observers %" PRIu64
            ", jobs of 64 ranks %" PRIu64 ", with steps of 1 ms %" PRIu64 ", of a minute %" PRIu64
            ", jobs with several steps a call %" PRIu64 " (saves due in the middle of one %" PRIu64
            ")\nnotices:",
            s->shared, s->uneven, s->observers, s->jobs_large, s->steps_short, s->steps_long,
            s->strides, s->between_strides);
    for (unsigned i = 0; i < MOMENT_COUNT; i++)
        fprintf(out, "%s %s %" PRIu64, i > 0 ? "," : "", moment_names[i], s->noticed[i]);
}

/* How often each kind of end, fault, message and event came. */
static void print_counts(const struct sim_stats *s, FILE *out)
{
    fprintf(out, "\nends:");
    for (unsigned i = 0; i < SIM_REASONS_MAX; i++)
        if (s->ends[i] > 0)
            fprintf(out, " %s %" PRIu64, muster_status_name((enum muster_status)i), s->ends[i]);
    fprintf(out, "\nfaults:");
    for (unsigned i = 1; i < FAULT_COUNT; i++)
        fprintf(out, "%s %s %" PRIu64, i > 1 ? "," : "", fault_names[i], s->faults[i]);
    fprintf(out, "\nmessages:");
    for (unsigned i = 1; i < WIRE_TYPE_MAX; i++)
        if (s->messages[i] > 0)
            fprintf(out, " %s %" PRIu64, wire_type_name(i), s->messages[i]);
    fprintf(out, "\nevents:");
    for (unsigned i = 1; i < EVENT_KIND_COUNT; i++)
        fprintf(out, " %s %" PRIu64, wire_event_kind_name(i), s->emitted[i]);
}

void sim_stats_print(const struct sim_stats *s, FILE *out)
{
    fprintf(out,
            "seeds %" PRIu64 ", simulated %" PRIu64 " s, events %" PRIu64 ", nodes %" PRIu64
            ", launches %" PRIu64 ", generations %" PRIu64 ", broker starts %" PRIu64 "\n",
            s->seeds, s->simulated_ms / 1000, s->events, s->nodes, s->launches, s->generations,
            s->broker_starts);
    fprintf(out,
            "steps %" PRIu64 ", done twice %" PRIu64 "; rounds %" PRIu64 ", commits %" PRIu64
            " (termination %" PRIu64 ", operator %" PRIu64 ", policy %" PRIu64 ", notice %" PRIu64
            "), unchanged %" PRIu64 ", aborts %" PRIu64 ", not saved %" PRIu64
            ", policy saves skipped %" PRIu64 "\n",
            s->steps, s->steps_lost, s->rounds, s->commits, s->commits_of[CAUSE_TERMINATION],
            s->commits_of[CAUSE_OPERATOR], s->commits_of[CAUSE_POLICY], s->commits_of[CAUSE_NOTICE],
            s->unchanged, s->aborts, s->not_saved, s->skipped);
    fprintf(out,
            "notices %" PRIu64 ", joined a decided save %" PRIu64 ", thaws %" PRIu64
            ", snapshots %" PRIu64 ", processes ended by their agent %" PRIu64 "\n",
            s->notices, s->late_joins, s->thaws, s->snapshots, s->process_exits_by_agent);
    fprintf(out,
            "after the faults, with time enough: notices %" PRIu64
            ", committed or unchanged %" PRIu64 ", aborted by a rank's fault %" PRIu64
            ", job over before %" PRIu64 "\nholds %" PRIu64 ", questions %" PRIu64
            ", answers %" PRIu64 ", databases restored %" PRIu64
            ", launches opened again after it %" PRIu64 "\naborts:",
            s->notices_ample, s->ample_saved, s->ample_aborted, s->ample_over, s->holds, s->queries,
            s->rows, s->histories_lost, s->launches_anew);
    for (unsigned i = 0; i < SIM_REASONS_MAX; i++)
        if (s->aborts_by[i] > 0)
            fprintf(out, " %s %" PRIu64, muster_status_name((enum muster_status)i),
                    s->aborts_by[i]);
    fprintf(out,
            "\ncame to rest after the faults: jobs %" PRIu64 " of %" PRIu64 ", the last in %" PRIu64
            " s (seed %" PRIu64 ")",
            s->rested, s->jobs, s->restless_us / 1000000, s->restless_seed);
    fprintf(out, "\nsaves written behind training %" PRIu64, s->behind);
    print_worlds(s, out);
    fprintf(out,
            "\nworlds with policies %" PRIu64 ": saves by time and cost %" PRIu64
            ", deletions decided %" PRIu64 " (asked for %" PRIu64 "), done %" PRIu64
            ", pins %" PRIu64 ", imports %" PRIu64 " (launches that ended for them %" PRIu64 ")",
            s->keeping, s->commits_of[CAUSE_PERIOD], s->deletions, s->deletions_asked, s->deleted,
            s->pins, s->imports, s->imports_by_rank);
    fprintf(out,
            "\npower cuts took back: shards %" PRIu64 ", names %" PRIu64 ", deletions %" PRIu64,
            s->cut_shards, s->cut_names, s->cut_deletions);
    fprintf(out,
            "\ntwo brokers: take-overs %" PRIu64 ", of a broker that lived on %" PRIu64
            ", batches that the fence refused %" PRIu64
            ", that came after their broker's death %" PRIu64,
            s->takeovers, s->overtaken, s->refused, s->late);
    fprintf(out,
            "\ncollectives broke: ranks that suspected a dead one %" PRIu64 ", a live one %" PRIu64
            ", were told that all live %" PRIu64 ", were told nothing %" PRIu64,
            s->suspects[1], s->suspects[0], s->suspects_all_live, s->suspects_unanswered);
    fprintf(out,
            "\nprograms that save by themselves: turns %" PRIu64
            ", beside others that save %" PRIu64 ", asked for again %" PRIu64
            ", over before they saved %" PRIu64 ", failed %" PRIu64,
            s->turns, s->turns_beside, s->turns_again, s->turns_over, s->turns_failed);
    fprintf(out,
            "\nsupervisors said of %" PRIu64 " that they are gone, %" PRIu64
            " were asked; terminations frozen:",
            s->gone_told, s->gone_lived);
    for (unsigned i = 0; i < PLANNED_COUNT; i++)
        fprintf(out, "%s '%s' %" PRIu64, i > 0 ? "," : "", plan_words[i], s->plans[i]);
    print_moves(s, out);
    print_counts(s, out);
    fputc('\n', out);
}
