/* The protocol of live/protocol for 2 ranks of a publisher and 2 of a subscriber. It is a spec of its own, not
 * generated from the code. Any process may die at any step; its connections close then. A lease may run out at any
 * moment. A rank's memory of one version has two words, so that a copy takes two steps. The memory of a dropped
 * version is used again for the next one, if no lease on it has lapsed. check_model.py visits every state. A violated
 * assertion or a process that waits for ever is an error. */

#define RANKS 2
#ifndef NEWEST
#define NEWEST 3   /* versions that are committed; the memory of the first is used again for the third */
#endif
#ifndef UPDATES
#define UPDATES 2  /* of each rank of the subscriber */
#endif

typedef Memory { byte word[2] };
Memory memory[4];            /* of publisher p: memory[2p] and memory[2p + 1] */
byte version_at[4];          /* the version that is kept there; 0: spare */
bool lapsed[4];              /* a reader whose lease is over may still read it */
byte ready[RANKS];           /* the newest version that a publisher's rank has told */
bool publisher_dead[RANKS];

bool dead[RANKS];            /* of the subscriber's ranks */
byte serving[RANKS];         /* 0: none, or in doubt */
byte proposed[4];            /* votes of the gathers, of round g and rank r at 2g + r; 255: not there yet */
byte answer[4];              /* 0: not there yet, 1: yes, 2: no */
byte leased[4];              /* a bit for each subscriber's rank that has a lease on this memory */
byte highest;                /* the newest version that any rank has served */
bool finished[RANKS];

inline serve(r, v) {
    serving[r] = v;
    assert(serving[1 - r] == 0 || serving[1 - r] == v || dead[1 - r]);  /* never two versions at once */
    assert(v >= highest);                                               /* never backwards */
    highest = v
}

proctype Publisher(byte p) {
    byte v = 1, at, slot;
    do
    :: v <= NEWEST ->
        atomic {  /* takes spare memory; else drops the older version, if no reader has a lease on it */
            if
            :: version_at[2 * p] == 0 -> slot = 2 * p
            :: else -> if
                :: version_at[2 * p + 1] == 0 -> slot = 2 * p + 1
                :: else ->
                    slot = (version_at[2 * p] < version_at[2 * p + 1] -> 2 * p : 2 * p + 1);
                    if
                    :: leased[slot] != 0 || lapsed[slot] -> goto leave  /* it takes new memory: out of this model */
                    :: else -> skip
                    fi
                fi
            fi;
            version_at[slot] = 0
        }
        memory[slot].word[0] = v;
        memory[slot].word[1] = v;
        atomic { version_at[slot] = v; ready[p] = v; v++ }
    :: publisher_dead[p] = true; goto leave
    :: v > NEWEST -> goto leave
    od;
leave: skip
}

/* One rank of the subscriber: up to two updates. */
proctype Subscriber(byte r) {
    byte v, p, slot, word, round = 0, got, mine = 0;
    bool whole, right;
update:
    do
    :: atomic {  /* dies, and its connections close */
        dead[r] = true; serving[r] = 0;
        leased[0] = leased[0] & ~(1 << r); leased[1] = leased[1] & ~(1 << r);
        leased[2] = leased[2] & ~(1 << r); leased[3] = leased[3] & ~(1 << r);
        lapsed[0] = true; lapsed[1] = true; lapsed[2] = true; lapsed[3] = true;
        goto leave
       }
    :: break
    od;
    /* propose: the newest version that both publisher's ranks have told; 0 after a loss */
    atomic {
        v = (ready[0] < ready[1] -> ready[0] : ready[1]);
        if
        :: publisher_dead[0] || publisher_dead[1] -> v = 0
        :: else -> skip
        fi;
        proposed[2 * round + r] = v
    }
    if
    :: proposed[2 * round + 1 - r] != 255 -> skip
    :: dead[1 - r] || finished[1 - r] -> goto leave  /* an error: this job has lost a rank */
    fi;
    v = (proposed[2 * round] < proposed[2 * round + 1] -> proposed[2 * round] : proposed[2 * round + 1]);
    if
    :: v == 0 || v <= mine -> goto leave    /* nothing newer */
    :: else -> skip
    fi;
#ifdef IN_PLACE
    serving[r] = 0;  /* the read overwrites it */
#endif
    /* read: a lease, two words, from each publisher's rank */
    whole = true; right = true; p = 0;
    do
    :: p < RANKS && whole ->
        atomic {
            slot = 2 * p;
            if
            :: publisher_dead[p] -> whole = false
            :: version_at[2 * p] == v -> leased[slot] = leased[slot] | (1 << r)
            :: version_at[2 * p] != v && version_at[2 * p + 1] == v ->
                slot = 2 * p + 1; leased[slot] = leased[slot] | (1 << r)
            :: else -> whole = false        /* gone */
            fi
        }
        if
        :: whole ->
            word = 0;
            do
            :: word < 2 -> atomic { got = memory[slot].word[word]; right = right && got == v; word++ }
            :: word < 2 -> atomic { leased[slot] = leased[slot] & ~(1 << r); lapsed[slot] = true }  /* a stall */
            :: word == 2 -> break
            od
        :: else -> skip
        fi;
        p++
    :: else -> break
    od;
    assert(!whole || right);                /* a whole read is never mixed, even if its lease has run out */
    /* activate: from the vote on, it serves nothing until it knows the result */
    atomic {
        answer[2 * round + r] = (whole -> 1 : 2);
#ifndef SERVES_WHILE_IT_VOTES
        if
        :: whole -> serving[r] = 0
        :: else -> skip
        fi
#endif
    }
    if
    :: answer[2 * round + 1 - r] != 0 ->                /* the gather succeeds here */
        if
        :: answer[2 * round] == 1 && answer[2 * round + 1] == 1 -> atomic { serve(r, v); mine = v }
        :: else -> skip
        fi
    :: dead[1 - r] || finished[1 - r] -> goto leave  /* it fails here: in doubt if it voted yes */
    :: whole -> goto leave                  /* the result is lost on the way */
    fi;
    atomic {
        leased[0] = leased[0] & ~(1 << r); leased[1] = leased[1] & ~(1 << r);
        leased[2] = leased[2] & ~(1 << r); leased[3] = leased[3] & ~(1 << r)
    }
    round++;
    if
    :: round < UPDATES -> goto update
    :: else -> skip
    fi;
leave:
    finished[r] = true
}

init {
    atomic {
        proposed[0] = 255; proposed[1] = 255; proposed[2] = 255; proposed[3] = 255;
        run Publisher(0); run Publisher(1); run Subscriber(0); run Subscriber(1)
    }
}
