/* lease.pml - two brokers over one log (fenced/fenced_log.c, broker/store/shared.c) as a model that spin searches
 * completely: lease, fence, a commit in doubt, take-over. One round is decided.
 *
 * What it shows, within the bounds of tests/model/lease.sh:
 *   TWICE   the log never has two decisions of the round
 *   TOLD    what nodes were told is in the log, and is the only thing that they were told
 *   STOLEN  a broker that renewed its lease in time keeps it (not with a clock that jumps)
 *   LATE    a broker that asks for a lease gets it when the last one has ended, at the latest
 *
 * What stands for what:
 *   - The database is one thread: a statement is one step (d_step). It is on its way for any time, and is carried out even
 *     if its broker gave it up, was overtaken, or is dead. Its answer may be lost (LOSSES).
 *   - entry[1..seq] is the log: a decision, or 0 for a batch without one. A decision is a number that is never used again,
 *     as the step of a round would be another one: who decides again decides something else.
 *   - A broker that gives a statement up (DOUBTS) reads the end of the log. If it is where it was, it sends the same batch
 *     again, while the first may still come. Otherwise it ends, and begins as a standby.
 *   - CRASHES: a broker loses all that it knows, at any time, and begins again as a standby. A pause is a broker that does
 *     nothing while others do.
 *   - now is the database's clock. A lease lasts TTL ticks. JUMPS: it ends too early, as by a clock that was set.
 *   - What a standby copies is the log up to the end that it learned with the lease, read at any later time.
 * Left out: snapshots, a log that is restored (proc.shared_put_back), the broker's own look at its lease: it keeps brokers
 * from work that the fence refuses, and nothing else stands on it.
 *
 * Broken on purpose, each must fail: FENCE=0 the statement appends whoever sends it; APART=1 the fence is looked at, as in a
 * sub-select, and the write follows as a second step; OWNCLOCK a lease ends by the clock of the broker that renews
 * it, one tick behind (1) or ahead (2); REPLICA=1 a take-over reads a log that is a batch behind; EARLY=1 nodes are told before
 * the answer; AGAIN=1 the fence looks at the epoch alone, not at the end of the log. */
#define NB 2 /* brokers */
#ifndef TAKES
#define TAKES 3
#endif
#ifndef OTHERS
#define OTHERS 1 /* batches without a decision */
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef DOUBTS
#define DOUBTS 1
#endif
#ifndef JUMPS
#define JUMPS 0
#endif
#ifndef TICKS
#define TICKS 3
#endif
#ifndef FENCE
#define FENCE 1
#endif
#ifndef APART
#define APART 0
#endif
#ifndef OWNCLOCK
#define OWNCLOCK 0
#endif
#ifndef REPLICA
#define REPLICA 0
#endif
#ifndef EARLY
#define EARLY 0
#endif
#ifndef AGAIN
#define AGAIN 0
#endif
#ifndef WITNESS
#define WITNESS 0
#endif
#define TTL 1
#define SLOTS 2 /* statements of a broker that are on their way: one, and one that it gave up */
#define ENTRIES 8

hidden byte TWICE, TOLD, STOLEN, LATE, NEVER;

/* the database */
byte epoch, seq, ends, now, renewed;
bool released = 1, jumped;
byte entry[ENTRIES];
byte decisions; /* numbers that were given */
byte told;      /* 0: nothing yet */
byte takes, others, crashes, losses, doubts, jumps;

/* a statement that appends */
typedef Statement { bool there, passed; byte epoch, seq, value };
Statement sent[NB * SLOTS];

mtype = { STANDBY, COPYING, ACTIVE, WAITING };
mtype is[NB];
byte mine[NB], at[NB], known[NB], batch[NB], slot[NB];
mtype = { NONE, YES, NO };
mtype answer[NB] = NONE;

inline begin_again(b) {
    is[b] = STANDBY; mine[b] = 0; at[b] = 0; known[b] = 0; batch[b] = 0; answer[b] = NONE
}

inline lasts(b) {
    renewed = now; jumped = 0;
    if
    :: !OWNCLOCK -> ends = now + TTL
    :: OWNCLOCK == 1 -> ends = now + TTL - 1
    :: OWNCLOCK == 2 -> ends = now + TTL + 1
    fi
}

inline tell(b, value) {
    TOLD = 0;
    i = 1;
    do
    :: i <= seq -> TOLD = TOLD || (entry[i] == value); i++
    :: else -> break
    od;
    TOLD = TOLD && (told == 0 || told == value);
    assert(TOLD);
    told = value;
    NEVER = !((WITNESS == 1 && epoch > 1) || (WITNESS == 2 && epoch == 1 && doubts > 0));
    assert(NEVER)
}

inline append(value_of) {
    seq++;
    assert(seq < ENTRIES);
    entry[seq] = value_of;
    TWICE = 1;
    i = 1;
    do
    :: i < seq -> TWICE = TWICE && (value_of == 0 || entry[i] == 0); i++
    :: else -> break
    od;
    assert(TWICE)
}

inline say(s, result) {
    sent[s].there = 0; sent[s].passed = 0;
    if
    :: is[s / SLOTS] == WAITING && slot[s / SLOTS] == s % SLOTS && mine[s / SLOTS] == sent[s].epoch -> answer[s / SLOTS] = result
    :: else
    fi;
    sent[s].epoch = 0; sent[s].seq = 0; sent[s].value = 0
}

#define passes(s) (!FENCE || (sent[s].epoch == epoch && (AGAIN || sent[s].seq == seq)))

active proctype database() {
    byte s, i;
end:
    do
    :: d_step { now < TICKS -> now++ }
    :: d_step { jumps < JUMPS && !released && ends > now -> jumps++; jumped = 1; ends = now }
    :: atomic {
        if
        :: sent[0].there -> s = 0
        :: sent[1].there -> s = 1
        :: sent[NB * SLOTS - 2].there -> s = NB * SLOTS - 2
        :: sent[NB * SLOTS - 1].there -> s = NB * SLOTS - 1
        fi;
        d_step {
            if
            :: APART && !sent[s].passed && passes(s) -> sent[s].passed = 1
            :: APART && sent[s].passed -> append(sent[s].value); say(s, YES)
            :: APART && !sent[s].passed && !passes(s) -> say(s, NO)
            :: !APART && passes(s) -> append(sent[s].value); say(s, YES)
            :: !APART && !passes(s) -> say(s, NO)
            fi;
            s = 0; i = 0
        }
       }
    :: d_step { losses < LOSSES && answer[0] != NONE -> losses++; answer[0] = NONE }
    :: d_step { losses < LOSSES && answer[NB - 1] != NONE -> losses++; answer[NB - 1] = NONE }
    od
}

inline send(b, value_of) {
    slot[b] = (sent[b * SLOTS].there -> 1 : 0);
    sent[b * SLOTS + slot[b]].there = 1;
    sent[b * SLOTS + slot[b]].epoch = mine[b];
    sent[b * SLOTS + slot[b]].seq = at[b];
    sent[b * SLOTS + slot[b]].value = value_of;
    batch[b] = value_of;
    answer[b] = NONE;
    is[b] = WAITING
}

#define has_room(b) (!sent[(b) * SLOTS].there || !sent[(b) * SLOTS + 1].there)

proctype broker(byte b) {
    byte i;
end:
    do
    /* asks for the lease: it is free, has ended, or is another's for now */
    :: d_step { is[b] == STANDBY && takes < TAKES && (released || now > ends || jumped) ->
            takes++;
            STOLEN = released || jumped || now > renewed + TTL;
            assert(STOLEN);
            epoch++; released = 0;
            lasts(b);
            mine[b] = epoch; at[b] = seq; is[b] = COPYING }
    :: d_step { is[b] == STANDBY && takes < TAKES && !(released || now > ends || jumped) && now > renewed + TTL ->
            LATE = 0; assert(LATE) }
    :: d_step { is[b] == COPYING ->
            i = 1;
            do
            :: i <= at[b] && !(REPLICA && i == at[b]) -> if :: entry[i] != 0 -> known[b] = entry[i] :: else fi; i++
            :: else -> break
            od;
            i = 0;
            is[b] = ACTIVE }
    :: d_step { (is[b] == ACTIVE || is[b] == WAITING) && now < TICKS ->
            if
            :: epoch == mine[b] -> lasts(b)
            :: else -> begin_again(b)
            fi }
    :: d_step { is[b] == ACTIVE && epoch == mine[b] && batch[b] == 0 -> released = 1; begin_again(b) }
    :: d_step { is[b] == ACTIVE && known[b] == 0 && batch[b] == 0 && has_room(b) && decisions < TAKES + 1 ->
            decisions++; send(b, decisions);
            if :: EARLY -> tell(b, decisions) :: else fi; i = 0 }
    :: d_step { is[b] == ACTIVE && others < OTHERS && has_room(b) -> others++; send(b, 0) }
    :: d_step { is[b] == ACTIVE && known[b] != 0 && told != known[b] -> tell(b, known[b]); i = 0 }
    :: d_step { is[b] == WAITING && answer[b] == YES ->
            at[b]++; answer[b] = NONE; is[b] = ACTIVE;
            if :: batch[b] != 0 -> known[b] = batch[b] :: else fi;
            batch[b] = 0 }
    :: d_step { is[b] == WAITING && answer[b] == NO -> begin_again(b) }
    /* in doubt: the answer was lost, or does not come */
    :: d_step { is[b] == WAITING && answer[b] == NONE && doubts < DOUBTS && has_room(b) ->
            doubts++;
            if
            :: epoch == mine[b] && (AGAIN || seq == at[b]) -> send(b, batch[b])
            :: else -> begin_again(b)
            fi }
    :: d_step { is[b] != STANDBY && crashes < CRASHES -> crashes++; begin_again(b) }
    od
}

init {
    byte b;

    atomic {
        do
        :: b < NB -> is[b] = STANDBY; run broker(b); b++
        :: else -> break
        od
    }
}
