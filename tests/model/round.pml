/* round.pml - the round of schema/PROTOCOL.md as a model that spin searches completely.
 *
 * What it shows, within the bounds that tests/model/lib.sh names:
 *   I1    a commit has only shards of its decided incarnations at its step
 *   I2    no member begins S + 1 before it captured, its round ended, it thawed or it left
 *   I4    a round decides once, also across starts of the broker
 *   CALM  progress: a round that nothing disturbs from its opening on does not abort
 *   OVER  progress: in the end no round is open, no notice is unanswered, nobody waits or hangs
 *
 * Progress needs no temporal logic here. Every move uses something up (a step, an event, a message, a fault),
 * so there are no cycles (`lib.sh` has spin search one configuration for them) and "in the end" is where no
 * move is left: a timer that is needed fires only when nothing else can happen (`timeout`); one that fires
 * too early is a fault with a budget. Watch looks at each state in which not even a timer is left.
 *
 * What stands for what:
 *   - One broker input with its transaction is one step (d_step): nothing of it is heard before all of it is in the
 *     database, so a crash falls between two. It loses want, pend, lout; all else in Broker is rows. The round of
 *     broker/core/rounds/round.c and save.c, the endings of generation.c and roster.c; names as there.
 *   - q[n] is what rank n has not applied of the journal. Events come in order, each at any later time: lost ones are
 *     repaired from the journal, so for the order of things a loss is a delay.
 *   - mk, mr, mv[n] is the one message that n repeats until it is taken. One of a round that is over is dropped at
 *     once: round numbers are not used again, so nothing could come of it. A withdrawn REPORT is lost, or comes all
 *     the same. DUPS: the answer is lost, and the repeated message is taken a second time, as if request numbers did
 *     not exist.
 *   - A gate and its closing are one step (one atomic word). A save takes time: freeze, abort and decision fall into it.
 *   - Steps are collective (LOCKSTEP): one ends when all have begun it. The loop is looked at for MAXS steps.
 *   - A lost node lives on unknowing (it may be dead: then it just does nothing more) until it is told, or ends.
 *     Takeover: a restarted rank ends the generation; the next one begins with new incarnations from the newest
 *     checkpoint.
 * Left out: saves that go on behind training, failing steps and saves, joining, manifests, snapshots, all clocks.
 *
 * Broken on purpose, each must fail: GUARD=0 the slow path admits steps without looking at begun < S; EQUAL=0 node and
 * broker do not look whether a save was at S; MAYSAVE=1 a takeover enters the decided round; FORGET=1 a restarted
 * broker decides again; PASTRULE=0 nobody says PAST and no way to S is bounded; BELL=0 nodes never thaw; KEEPASK=0
 * a late decision ends the wait for the next policy save. */
#ifndef NN
#define NN 2 /* ranks */
#endif
#ifndef MAXS
#define MAXS 2 /* steps that are looked at */
#endif
#ifndef REPL
#define REPL 0 /* 1: layout replicated */
#endif
#ifndef ATT
#define ATT 2 /* rounds a cause gets (3 in limits.h) */
#endif
#ifndef EVERY
#define EVERY 0 /* policy save each EVERY steps; 0: none */
#endif
#ifndef OPS
#define OPS 0 /* saves that an operator asks for */
#endif
#ifndef NOTICES
#define NOTICES 1
#endif
#ifndef LOCKSTEP
#define LOCKSTEP 1
#endif
/* budgets of faults */
#ifndef CRASHES
#define CRASHES 0 /* broker crashes and starts again */
#endif
#ifndef DEATHS
#define DEATHS 0 /* broker is gone for good */
#endif
#ifndef LOSSES
#define LOSSES 0 /* a node is given up */
#endif
#ifndef TAKES
#define TAKES 0 /* a rank is restarted, or the job after its end */
#endif
#ifndef THAWS
#define THAWS 0 /* a node's timer fires too early */
#endif
#ifndef HASTES
#define HASTES 0 /* a timer of the broker fires too early */
#endif
#ifndef DUPS
#define DUPS 0 /* an answer is lost */
#endif
/* must-fail controls */
#ifndef KEEPASK
#define KEEPASK 1
#endif
#ifndef GUARD
#define GUARD 1
#endif
#ifndef LOOK_I2
#define LOOK_I2 1 /* 0: look past a broken I2, for what comes of it */
#endif
#ifndef EQUAL
#define EQUAL 1
#endif
#ifndef MAYSAVE
#define MAYSAVE 0
#endif
#ifndef FORGET
#define FORGET 0
#endif
#ifndef PASTRULE
#define PASTRULE 1
#endif
#ifndef BELL
#define BELL 1
#endif

#ifndef WITNESS
#define WITNESS 0 /* the number of a seen(): a search that ends there shows that the place is reached at all */
#endif

#define BIT(n) (1 << (n))
#define ALL ((1 << NN) - 1)
#define QUEUE 14 /* a full queue in a d_step is an error that spin reports: nothing is cut off silently */

mtype = { SKIPS, GIVES_UP, SERVES_THE_ERROR, THAWS_OUT }; /* words for the story of a trail */

/* events: kind, round, value, members + flags */
#define EV_FREEZE 1
#define EV_DECISION 2
#define EV_COMMIT 3
#define EV_ABORT 4 /* value 1: again */
#define EV_UNCHANGED 5
#define EV_NOT_SAVED 6
#define EV_TERMINATION 7 /* joined the open round */
#define EV_LOST 8 /* value 1: a round follows */
#define EV_RESTARTED 9
#define EV_SKIPPED 10
#define F_TERM 16 /* the cause is termination */
#define F_BREAK 32 /* steps in flight are broken off */

/* messages */
#define M_REPORT 1
#define M_CAPTURED 2 /* SAVED of a writer, AT_STEP{captured} of another member */
#define M_PAST 3

/* --- the database ---------------------------------------------------------------------------------- */
#define NONE 0
#define FREEZING 1
#define DECIDED 2
#define TERM 1
#define OPERATOR 2
#define POLICY 3
#define RUNNING 0
#define ENDING 1
byte rnd;            /* rounds so far */
byte st, S, cause, att;
bit brk_steps;       /* round.aborted_steps */
byte mem, rep, cap;  /* ranks: members, reported, captured or saved */
byte furthest, nearest; /* of the reports */
byte newest;         /* committed step; 0 is the resume step */
byte notice;         /* 0 none, 1 active, 2 served */
byte gen, gst;
bit known_error;     /* gen.error_rank >= 0 */
byte gone;           /* ranks: lost or left */
byte pol_step, pol_decided; /* pol_decided is what a restart finds in the rows */
/* not in the database */
byte want, want_att;
bit want_brk;
byte pend;
byte lout;           /* ranks: missed the last freeze */
bit pol_skipped;
bit dead;            /* for good */

/* --- the nodes ----------------------------------------------------------------------------------------- */
#define P_NONE 0
#define P_FROZEN 1
#define P_QUIET 2    /* frozen, to report when no step is in flight */
#define P_THAWED 3
#define P_TO_STEP 4
#define P_CAPTURING 5
#define P_CAPTURED 6 /* and trains on */
#define P_HELD 7     /* captured; a termination waits for its verdict */
byte done[NN];
bit stepping[NN];    /* begun = done + stepping */
bit open[NN];        /* gate, and view: VIEW_OPEN */
byte part[NN], r[NN], aim[NN];
bit term[NN], writer[NN];
bit saving[NN];      /* the training thread writes */
bit err[NN], err_wait[NN]; /* an error was heard; a round is awaited before it is served */
bit brk[NN];         /* on_error was called: the step in flight may come back undone */
bit ask[NN], refused[NN]; /* policy save: waits; the answer is no */
byte due[NN];
byte sa[NN];         /* SAVE_AT{step} on its way */
bit sa_last[NN];     /* said after what mk holds: requests are taken in order */
bit fin[NN];         /* VIEW_END */
byte mk[NN], mr[NN], mv[NN];
chan q[NN] = [QUEUE] of { byte, byte, byte, byte };
#if MAYSAVE
byte fresh, decided_fresh; /* ranks taken over: now, and at the decision */
#endif

byte crashes = CRASHES, deaths = DEATHS, losses = LOSSES, takes = TAKES, thaws = THAWS, hastes = HASTES, dups = DUPS;
byte ops = OPS, notices = NOTICES;

/* --- what only the proof sees: all of it follows from the state above as long as nothing is broken ----------- */
bit bad_shard;       /* accepted from another step or incarnation than decided */
bit decided_once;
bit disturbed;       /* since the present round was opened */
hidden byte I1, I2, I4, CALM, OVER, NEVER;
hidden byte i, k, er, ev, ex;
hidden byte again, is_needed;

#define FAULTLESS (crashes == CRASHES && deaths == DEATHS && losses == LOSSES && takes == TAKES && thaws == THAWS && \
                   hastes == HASTES)
#define BEGUN(n) (done[n] + stepping[n])
#define WRITERS (REPL -> (mem & (-mem)) : mem)
#define NEEDED(n) (st == FREEZING || (!(cap & BIT(n)) && \
                   ((WRITERS & BIT(n)) || !REPL || !(cap & WRITERS))))
#if NN == 2
#define EACH(p) (p(0) && p(1))
#else
#define EACH(p) (p(0) && p(1) && p(2))
#endif

inline seen(what) {
    NEVER = (what != WITNESS || !WITNESS); assert(NEVER)
}
inline emit(kind, round, value, flags) {
    printf("broker: publishes EV_%d, round %d, value %d, flags %d\n", kind, round, value, flags);
    i = 0;
    do
    :: i < NN ->
        if
        :: !fin[i] -> q[i]!kind, round, value, flags
        :: else
        fi;
        i++
    :: else -> break
    od
}

/* --- broker ------------------------------------------------------------------------------------------------- */

inline unsay(n) {
    mk[n] = 0; mr[n] = 0; mv[n] = 0; sa_last[n] = 0
}
inline round_over() {
    i = 0;
    do
    :: i < NN -> unsay(i); i++
    :: else -> break
    od;
    st = NONE; S = 0; cause = 0; att = 0; brk_steps = 0; mem = 0; rep = 0; cap = 0; furthest = 0; nearest = 0;
    bad_shard = 0; decided_once = 0; disturbed = 0
}
inline generation_ending() {
    gst = ENDING; want = 0; want_att = 0; want_brk = 0; pend = 0
}
inline served() {
    if
    :: notice == 1 -> notice = 2
    :: else
    fi
}
inline not_saved() {
    emit(EV_NOT_SAVED, 0, 0, 0); served(); generation_ending()
}
#define FINAL 0
#define RETRY 1
#define RETRY_BREAK 2
#define LATER 3
inline abort(how) {
    again = how == LATER || (how != FINAL && cause != POLICY && att < ATT && gst == RUNNING);
    emit(EV_ABORT, rnd, again, 0);
    if
    :: again && how != LATER -> want = cause; want_att = att + 1; want_brk = (how == RETRY_BREAK)
    :: !again && cause == TERM -> not_saved()
    :: else
    fi;
    round_over()
}
/* Nothing disturbed it, so it had to come to an end by itself. */
inline calm() {
    CALM = disturbed || known_error || gst != RUNNING; assert(CALM)
}
inline decide(step) {
    I4 = !decided_once; assert(I4);
    decided_once = 1; st = DECIDED; S = step; cap = 0;
#if MAYSAVE
    decided_fresh = fresh;
#endif
    emit(EV_DECISION, rnd, S, mem + (cause == TERM -> F_TERM : 0))
}
inline decide_from_reports() {
    if
    :: brk_steps && nearest != furthest -> abort(FINAL)
    :: !(brk_steps && nearest != furthest) && furthest == newest ->
        seen(7); emit(EV_UNCHANGED, rnd, 0, (cause == TERM -> F_TERM : 0));
        if
        :: cause == TERM -> served(); generation_ending()
        :: else
        fi;
        round_over()
    :: else -> decide(furthest)
    fi
}
inline commit() {
    I1 = !bad_shard; assert(I1);
    newest = S;
    seen((gen -> 3 : (brk_steps -> 4 : (cause == TERM -> 1 : (cause == POLICY -> 2 : 0)))));
    seen((cause == TERM && crashes < CRASHES && !disturbed -> 5 : 0));
    emit(EV_COMMIT, rnd, S, (cause == TERM -> F_TERM : 0));
    if
    :: cause == TERM -> served(); generation_ending()
    :: cause != TERM && known_error -> generation_ending()
    :: else
    fi;
    round_over()
}
inline policy_open(step) {
    pol_step = step;
    if
    :: step == newest || (!REPL && gone) || (ALL & ~gone & ~(REPL -> lout : 0)) == 0 ->
        pol_skipped = 1; seen(8); emit(EV_SKIPPED, 0, step, 0)
    :: else ->
        pol_skipped = 0; pol_decided = step;
        rnd++; cause = POLICY; att = 1; mem = ALL & ~gone & ~(REPL -> lout : 0); lout = 0;
        disturbed = !FAULTLESS; /* who skipped a save may be past it, or asked for it long ago */
        decide(step)
    fi
}
/* round_without(): what the loss of n does to the open round */
inline without(n) {
    if
    :: st != NONE && (mem & BIT(n)) && NEEDED(n) ->
        if
        :: REPL && cause == TERM -> abort(RETRY_BREAK)
        :: else -> abort(FINAL)
        fi
    :: else
    fi
}
inline check_ended() {
    if
    :: gone == ALL ->
        if
        :: st != NONE -> abort(LATER)
        :: else
        fi;
        generation_ending()
    :: else
    fi
}
inline peer_is_lost(n) {
    printf("broker: gives rank %d up\n", n);
    is_needed = st != NONE && (mem & BIT(n)) && NEEDED(n);
    gone = gone | BIT(n); known_error = 1;
    emit(EV_LOST, 0, (st != NONE && (!is_needed || (cause == TERM && REPL))), 0);
    without(n);
    if
    :: gst == RUNNING && st == NONE && want == 0 -> generation_ending()
    :: else
    fi;
    check_ended()
}
inline peer_left(n) {
    gone = gone | BIT(n);
    if
    :: gst == RUNNING ->
        without(n);
        if
        :: gst == RUNNING && !known_error && gone != ALL ->
            known_error = 1;
            emit(EV_LOST, 0, ((st != NONE || want) && (cause == TERM || want == TERM) && REPL), 0);
            if
            :: st == NONE && want == 0 -> generation_ending()
            :: else
            fi
        :: else
        fi
    :: else
    fi;
    check_ended()
}
/* One message of rank n: accept() of save.c, report and past of round.c. */
inline take(n, kind, round, value) {
    printf("broker: takes M_%d of round %d, value %d, from rank %d\n", kind, round, value, n);
    if
    :: (gone & BIT(n)) || !(mem & BIT(n)) || round != rnd -> skip /* stale, or of no use now */
    :: else ->
        if
        :: kind == M_REPORT && st == FREEZING && !(rep & BIT(n)) ->
            furthest = (rep == 0 || value > furthest -> value : furthest);
            nearest = (rep == 0 || value < nearest -> value : nearest);
            rep = rep | BIT(n);
            if
            :: rep == mem -> decide_from_reports()
            :: else
            fi
        :: kind == M_CAPTURED && st == DECIDED && !(cap & BIT(n)) && (value == S || !EQUAL) ->
            cap = cap | BIT(n);
            bad_shard = bad_shard || ((WRITERS & BIT(n)) && (value != S
#if MAYSAVE
                        || ((fresh & BIT(n)) != (decided_fresh & BIT(n)))
#endif
                        ));
            if
            :: (cap & WRITERS) == WRITERS -> commit()
            :: else
            fi
        :: kind == M_PAST && st == DECIDED && NEEDED(n) -> seen(6); calm(); abort(RETRY)
        :: else
        fi
    fi
}
inline save_at(n, step) {
    printf("broker: takes SAVE_AT{%d} from rank %d\n", step, n);
    if
    :: gst != RUNNING || (gone & BIT(n)) || step < pol_step ||
       (step == pol_step && (pol_skipped || st != DECIDED || S != step)) -> refused[n] = ask[n]
    :: else ->
        if
        :: step == pol_step -> skip
        :: step > pol_step && st == NONE && want == 0 -> policy_open(step)
        :: step > pol_step && !(st == NONE && want == 0) ->
            if
            :: st == DECIDED && (mem & BIT(n)) && !(cap & BIT(n)) && step > S -> abort(RETRY)
            :: else
            fi;
            if
            :: step > pend && gst == RUNNING -> pend = step
            :: else
            fi
        fi
    fi
}
inline open_round() {
    rnd++; cause = want; att = want_att; brk_steps = want_brk; want = 0; want_att = 0; want_brk = 0;
    mem = ALL & ~gone & ~(REPL -> lout : 0); lout = 0; disturbed = 0;
    if
    :: mem == 0 || (!REPL && mem != ALL) -> abort(FINAL)
    :: else -> st = FREEZING;
        emit(EV_FREEZE, rnd, 0, mem + (cause == TERM -> F_TERM : 0) + (brk_steps -> F_BREAK : 0))
    fi
}
/* core_load() and on_start() */
inline restart() {
    printf("broker: crashes and starts again\n");
    want = 0; want_att = 0; want_brk = 0; pend = 0; lout = 0; pol_skipped = 0; pol_step = pol_decided;
    disturbed = 1;
#if FORGET
    if
    :: st == DECIDED -> st = FREEZING; decide(furthest)
    :: else
    fi;
#endif
    if
    :: st == FREEZING ->
        k = cause; er = att; abort(LATER);
        if
        :: gst == RUNNING -> want = k; want_att = er
        :: else
        fi
    :: st == NONE && notice == 1 && gst == RUNNING -> want = TERM; want_att = 1
    :: else
    fi
}
/* The next generation: old rounds are closed, old incarnations are fenced, all begin at the newest checkpoint. */
#if TAKES
inline relaunch() {
    printf("broker: opens the next generation\n");
    gen++; gst = RUNNING; known_error = 0; gone = 0; lout = 0; notice = 0; want = 0; pend = 0;
    pol_step = 0; pol_decided = 0; pol_skipped = 0;
    i = 0;
    do
    :: i < NN ->
        fresh_node(i);
        i++
    :: else -> break
    od;
    round_over()
}
#endif
inline drain(n) {
    do
    :: len(q[n]) > 0 -> q[n]?k, er, ev, ex
    :: else -> break
    od
}
inline fresh_node(n) {
    drain(n);
    done[n] = newest; stepping[n] = 0; open[n] = 1; part[n] = P_NONE; r[n] = 0; aim[n] = 0;
    term[n] = 0; writer[n] = 0; saving[n] = 0; err[n] = 0; err_wait[n] = 0; brk[n] = 0; ask[n] = 0; refused[n] = 0;
    due[n] = (EVERY -> (newest / (EVERY + !EVERY) + 1) * EVERY : 0);
    sa[n] = 0; fin[n] = 0; unsay(n)
}

/* --- timers: 2 s freeze, 4 s a node's short ones, 60 s way and save, over 120 s a node's patience ----------------- */

#define FREEZE_TIMER (!dead && st == FREEZING)
#define SAVE_TIMER (!dead && st == DECIDED && PASTRULE)
#define THAW_TIMER(n) (BELL && (part[n] == P_FROZEN || part[n] == P_QUIET))
#define GIVE_UP_TIMER(n) (part[n] == P_TO_STEP || part[n] == P_HELD)
#define ASK_TIMER(n) (ask[n])
#define ERROR_TIMER(n) (err[n] && err_wait[n] && (part[n] == P_NONE || part[n] == P_THAWED))
#define NO_SHORT_TIMER(n) (!THAW_TIMER(n) && !ASK_TIMER(n) && !ERROR_TIMER(n))
#define NO_TIMER(n) (NO_SHORT_TIMER(n) && !GIVE_UP_TIMER(n))

active proctype Broker() {
    byte n;
    do
    :: d_step { !dead && want && st == NONE && gst == RUNNING -> open_round() }
    :: d_step { !dead && pend && st == NONE && !want && gst == RUNNING ->
        if
        :: pend > pol_step -> ev = pend; pend = 0; policy_open(ev)
        :: else -> pend = 0
        fi }
    /* causes */
    :: d_step { !dead && notices && gst == RUNNING && notice == 0 ->
        notices--; notice = 1;
        if
        :: st != NONE -> cause = TERM; emit(EV_TERMINATION, rnd, 0, 0)
        :: else ->
            if
            :: want != TERM -> want = TERM; want_att = 1
            :: else
            fi
        fi }
#if OPS
    :: d_step { !dead && ops && gst == RUNNING && st == NONE && !want -> ops--; want = OPERATOR; want_att = 1 }
#endif
    /* time */
    :: d_step { FREEZE_TIMER && (timeout || hastes) ->
        if
        :: hastes -> hastes--; disturbed = 1
        :: else
        fi;
        calm();
        lout = mem & ~rep;
        if
        :: brk_steps -> abort(RETRY_BREAK)
        :: else -> abort(RETRY)
        fi }
    :: d_step { SAVE_TIMER && ((timeout && EACH(NO_SHORT_TIMER)) || hastes) ->
        if
        :: hastes -> hastes--; disturbed = 1
        :: else
        fi;
        calm(); abort(RETRY) }
#if HASTES
    :: d_step { !dead && hastes && notice == 1 && gst == RUNNING -> /* the deadline's margin */
        hastes--;
        if
        :: st != NONE -> abort(FINAL)
        :: else -> not_saved()
        fi }
#endif
    /* the broker itself */
#if CRASHES
    :: d_step { !dead && crashes -> crashes--; restart() }
#endif
#if DEATHS
    :: d_step { !dead && deaths -> deaths--; dead = 1 }
#endif
    od
}

#define MK_FIRST(n) (!sa[n] || sa_last[n])
/* The broker's ear for rank n: what it takes from it, and what becomes of it. */
proctype Ear(byte n) {
    do
    :: d_step { !dead && mk[n] && MK_FIRST(n) ->
        take(n, mk[n], mr[n], mv[n]); unsay(n) }
#if DUPS
    :: d_step { !dead && mk[n] && MK_FIRST(n) && dups -> dups--; take(n, mk[n], mr[n], mv[n]) }
#endif
#if EVERY
    :: d_step { !dead && sa[n] && !sa_last[n] -> ev = sa[n]; sa[n] = 0; save_at(n, ev) }
#endif
    :: d_step { !dead && fin[n] && !(gone & BIT(n)) && !mk[n] && !sa[n] -> peer_left(n) }
#if LOSSES
    :: d_step { !dead && losses && gst == RUNNING && !fin[n] && !(gone & BIT(n)) ->
        losses--; disturbed = 1; peer_is_lost(n) }
#endif
    /* a rank whose process is lost comes again */
#if MAYSAVE
    :: d_step { !dead && takes && gst == RUNNING && st == DECIDED && !(gone & BIT(n)) ->
        takes--; fresh = fresh | BIT(n);
        fresh_node(n); q[n]!EV_DECISION, rnd, S, mem + (cause == TERM -> F_TERM : 0) }
#elif TAKES
    :: d_step { !dead && takes && (gone & BIT(n)) && gst == RUNNING ->
        known_error = 1; emit(EV_RESTARTED, 0, 0, 0); generation_ending(); check_ended() }
    :: d_step { n == 0 && !dead && takes && gst == ENDING -> takes--; relaunch() }
#endif
    od
}

/* --- node --------------------------------------------------------------------------------------------------------- */

inline finish(n) {
    drain(n);
    fin[n] = 1; open[n] = 0; part[n] = P_NONE; aim[n] = 0; term[n] = 0; writer[n] = 0; saving[n] = 0;
    err[n] = 0; err_wait[n] = 0; brk[n] = 0; ask[n] = 0; refused[n] = 0; due[n] = 0;
    stepping[n] = 0 /* on_error, and in the end the process is ended */
}
inline open_or_end(n) {
    if
    :: err[n] && !err_wait[n] -> finish(n)
    :: else -> open[n] = !(err[n] || ask[n])
    fi
}
inline over_for_me(n) {
    part[n] = P_NONE; aim[n] = 0; term[n] = 0; writer[n] = 0; err_wait[n] = 0;
    open_or_end(n)
}
inline say(n, kind, value) {
    printf("rank %d: says M_%d of round %d, value %d\n", n, kind, r[n], value);
    if
    :: st != NONE && r[n] == rnd -> mk[n] = kind; mr[n] = r[n]; mv[n] = value; sa_last[n] = 0
    :: else -> unsay(n) /* of a round that is over: nobody will take it for anything */
    fi
}
inline on_freeze(n) {
    r[n] = er; term[n] = ((ex & F_TERM) != 0); aim[n] = 0; writer[n] = 0;
    ask[n] = 0; refused[n] = 0; open[n] = 0; err_wait[n] = err[n];
    if
    :: (ex & F_BREAK) && stepping[n] -> part[n] = P_QUIET; brk[n] = 1; unsay(n)
    :: else -> part[n] = P_FROZEN; say(n, M_REPORT, BEGUN(n))
    fi
}
inline on_decision(n) {
    r[n] = er; term[n] = ((ex & F_TERM) != 0);
    open[n] = 0; err_wait[n] = err[n];
    if
    :: ev < done[n] && KEEPASK -> skip /* of an earlier step: not what it waits for */
    :: else -> ask[n] = 0; refused[n] = 0
    fi;
    if
    :: BEGUN(n) > ev ->
        if
        :: PASTRULE -> say(n, M_PAST, 0)
        :: else
        fi;
        part[n] = P_NONE; term[n] = 0; aim[n] = 0; writer[n] = 0; open_or_end(n)
    :: else ->
        part[n] = P_TO_STEP; aim[n] = ev;
        writer[n] = (!REPL || ((ex & ALL) & (-(ex & ALL))) == BIT(n))
    fi
}
inline on_abort(n) {
    if
    :: er == r[n] && part[n] != P_NONE ->
        if
        :: ev -> part[n] = P_FROZEN; aim[n] = 0; writer[n] = 0; open[n] = 0
        :: else -> over_for_me(n)
        fi
    :: else
    fi
}
inline on_error(n) {
    if
    :: err[n] -> skip /* the first one wins */
    :: else ->
        err[n] = 1; brk[n] = stepping[n]; err_wait[n] = ev;
        if
        :: !ev -> finish(n)
        :: ev && part[n] == P_NONE -> open[n] = 0
        :: else
        fi
    fi
}
/* No round holds the training thread: who captured trains on. */
#define LETS_GO(n) (part[n] == P_NONE || part[n] == P_THAWED || part[n] == P_CAPTURED)
inline ask_over(n) {
    ask[n] = 0; refused[n] = 0;
    if
    :: LETS_GO(n) -> open_or_end(n)
    :: else
    fi
}
inline apply(n) {
    printf("rank %d: applies EV_%d of round %d, value %d\n", n, k, er, ev);
    if
    :: k == EV_FREEZE && er > r[n] && (ex & BIT(n)) -> on_freeze(n)
    :: k == EV_DECISION && (ex & BIT(n)) &&
       (er > r[n] || (er == r[n] && (part[n] == P_FROZEN || part[n] == P_QUIET || part[n] == P_THAWED))) ->
        on_decision(n)
    :: k == EV_COMMIT || k == EV_UNCHANGED ->
        if
        :: ex & F_TERM -> finish(n)
        :: !(ex & F_TERM) && er == r[n] && part[n] != P_NONE -> over_for_me(n)
        :: else
        fi
    :: k == EV_ABORT -> on_abort(n)
    :: k == EV_TERMINATION && er == r[n] && part[n] != P_NONE -> term[n] = 1
    :: k == EV_LOST -> on_error(n)
    :: k == EV_NOT_SAVED || k == EV_RESTARTED -> finish(n)
    :: k == EV_SKIPPED && ask[n] && ev == done[n] ->
        ask_over(n)
    :: else
    fi
}
/* captured: a termination holds until the verdict */
inline hold_or_go(n) {
    say(n, M_CAPTURED, done[n]);
    if
    :: term[n] -> part[n] = P_HELD
    :: else -> part[n] = P_CAPTURED; err_wait[n] = err[n]; open_or_end(n)
    fi
}

#define IDLE(n) (!fin[n] && !stepping[n] && !saving[n])
#define IS_DUE(n) (EVERY && done[n] >= due[n])
#define NEXT_DUE(n) ((done[n] / (EVERY + !EVERY) + 1) * EVERY)
#define EARLY (thaws || timeout)
#if LOCKSTEP
#define HAS_BEGUN(m) (BEGUN(m) > done[n])
#else
#define HAS_BEGUN(m) (true)
#endif

inline early(n, what) {
    printf("rank %d: %e\n", n, what);
    if
    :: thaws -> thaws--; disturbed = 1
    :: else
    fi
}

proctype Node(byte n) {
    do
    /* the training thread */
    :: d_step { IDLE(n) && done[n] < MAXS &&
                ((open[n] && !IS_DUE(n)) || (part[n] == P_TO_STEP && (done[n] < aim[n] || !GUARD))) ->
        I2 = !(st == DECIDED && r[n] == rnd && (mem & BIT(n)) && done[n] >= S &&
               (part[n] == P_FROZEN || part[n] == P_QUIET || part[n] == P_TO_STEP || part[n] == P_CAPTURING));
        assert(I2 || !LOOK_I2);
        stepping[n] = 1; printf("rank %d: begins step %d\n", n, BEGUN(n));
        if
        :: IS_DUE(n) -> due[n] = NEXT_DUE(n)
        :: else
        fi }
    :: d_step { stepping[n] && EACH(HAS_BEGUN) -> stepping[n] = 0; done[n]++; brk[n] = 0;
        printf("rank %d: has done step %d\n", n, done[n]) }
    :: d_step { stepping[n] && brk[n] -> stepping[n] = 0; brk[n] = 0 }
    :: d_step { part[n] == P_QUIET && !stepping[n] -> part[n] = P_FROZEN; say(n, M_REPORT, done[n]) }
    :: d_step { IDLE(n) && part[n] == P_TO_STEP && (done[n] == aim[n] || (!EQUAL && done[n] > aim[n])) ->
        if
        :: IS_DUE(n) -> due[n] = NEXT_DUE(n) /* the open round saves this very step */
        :: else
        fi;
        if
        :: writer[n] -> part[n] = P_CAPTURING; saving[n] = 1
        :: else -> hold_or_go(n)
        fi }
    :: d_step { saving[n] ->
        saving[n] = 0;
        if
        :: part[n] == P_CAPTURING -> hold_or_go(n)
        :: else /* the round ended while it was written */
        fi }
#if EVERY
    :: d_step { IDLE(n) && IS_DUE(n) && open[n] ->
        due[n] = NEXT_DUE(n); open[n] = 0; ask[n] = 1; refused[n] = 0; sa[n] = done[n]; sa_last[n] = (mk[n] != 0);
        printf("rank %d: asks for a save at step %d\n", n, done[n]) }
    :: d_step { IDLE(n) && IS_DUE(n) && !open[n] && (part[n] == P_FROZEN || part[n] == P_QUIET || part[n] == P_HELD) ->
        due[n] = NEXT_DUE(n) } /* the open round stands for this save */
    :: d_step { refused[n] -> ask_over(n) }
    :: d_step { ASK_TIMER(n) && EARLY -> early(n, SKIPS); ask_over(n) }
    :: d_step { ASK_TIMER(n) && EARLY && sa[n] -> early(n, SKIPS); sa[n] = 0; sa_last[n] = 0; ask_over(n) }
#endif
    /* the agent */
    :: d_step { len(q[n]) > 0 -> q[n]?k, er, ev, ex; apply(n); k = 0; er = 0; ev = 0; ex = 0 }
    :: d_step { THAW_TIMER(n) && EARLY -> /* what was withdrawn is under way all the same */
        early(n, THAWS_OUT); part[n] = P_THAWED; err_wait[n] = 0; open_or_end(n) }
    :: d_step { THAW_TIMER(n) && EARLY && mk[n] == M_REPORT ->
        early(n, THAWS_OUT); unsay(n); part[n] = P_THAWED; err_wait[n] = 0; open_or_end(n) }
    :: d_step { GIVE_UP_TIMER(n) && (thaws || (timeout && !SAVE_TIMER)) -> early(n, GIVES_UP); over_for_me(n) }
    :: d_step { ERROR_TIMER(n) && EARLY -> early(n, SERVES_THE_ERROR); err_wait[n] = 0; open_or_end(n) }
#if LOSSES
    :: d_step { !fin[n] && (gone & BIT(n)) -> finish(n) } /* it hears E_STALE, or died */
#endif
    od
}

/* --- in the end ------------------------------------------------------------------------------------------------------ */

#define AT_PEACE(m) (fin[m] || (open[m] && !stepping[m] && !saving[m]))
#define AT_EASE(m) (fin[m] || open[m])
#define IS_OUT(m) (fin[m])

active proctype Watch() {
    d_step { timeout && !FREEZE_TIMER && !SAVE_TIMER && EACH(NO_TIMER) ->
        OVER = (dead && EACH(AT_EASE)) ||
               (!dead && st == NONE && want == 0 && pend == 0 && EACH(AT_PEACE) && !(notice == 1 && gst == RUNNING) &&
                (gst == RUNNING || EACH(IS_OUT)));
        assert(OVER) };
    do
    :: true -> progress: skip /* the end repeats itself; any other cycle is one without progress */
    od
}

init {
    atomic {
        i = 0;
        do
        :: i < NN ->
            open[i] = 1; due[i] = EVERY;
            run Ear(i); run Node(i);
            i++
        :: else -> break
        od
    }
}
