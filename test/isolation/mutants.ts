import type { Mutation } from "../postgres/mutation.js";

/** A guard to remove, a permutation that shows the effect, and the lines it prints only without the guard. */
export interface Mutant extends Mutation {
  /** What goes wrong, and without which guard. */
  readonly title: string;
  readonly spec: string;
  readonly permutation: string;
  readonly seen: readonly string[];
}

const LEFT_FOREVER = "waiter without a waker";

/** A task starts that must not, starts twice, or never starts. */
const broken: readonly Mutant[] = [
  {
    title: "one slot is given out twice without the lane lock",
    spec: "admission-and-hand-over",
    permutation: "begin done_1 enqueue done_2 commit check drain",
    in: "lock_lanes",
    edits: [["lane-lock", ""]],
    seen: ["slots differ from holders: used 3, cap 3, held 4", "at most 4 at once"],
  },
  {
    title: "one slot is given out twice without a snapshot younger than the lane lock",
    spec: "admission-and-hand-over",
    permutation: "begin done_1 enqueue done_2 commit check drain",
    in: "lock_lanes",
    edits: [
      ["lane-lock", ""],
      ["snapshot", "perform 1 from sluice.lane where id = any (lanes) order by id for update;"],
    ],
    seen: ["at most 4 at once"],
  },
  {
    title: "a locked waiter waits forever without a note",
    spec: "waiter-locked-by-abort",
    permutation: "begin cancel_2 done_1 recall rollback check recall claim drain",
    in: "admit_level",
    edits: [["locked-out", "false"]],
    seen: [LEFT_FOREVER, "left 2"],
  },
  {
    title: "a task that joins a lane waits forever without the note of its enqueue",
    spec: "enqueue-and-last-completion",
    permutation: "begin enqueue done_1 commit check claim drain",
    in: "insert_laned",
    edits: [["note", "false"]],
    seen: [LEFT_FOREVER, "left 1,2,3"],
  },
  {
    title: "a task passes the locked head of its order key without the rule head or nothing",
    spec: "head-or-nothing",
    permutation: "begin cancel_2 done_1 claim_also recall rollback check recall claim drain",
    in: "admit_order",
    edits: [["head", "1 for update skip locked"]],
    seen: ["settled 1 of 1, started 3"],
  },
  {
    title: "a zombie settles a task of another worker without the fence",
    spec: "settle-and-reap",
    permutation: "begin done_in_tx done_1_2 dies reap claim rollback check o_done_2 drain",
    in: "settle_few",
    edits: [["fence", ""]],
    seen: ["settled 2 of 2", "settled 0 of 1"],
  },
  {
    title: "a step commits starts after a limit has changed, without the barrier",
    spec: "lower-total",
    permutation: "begin reuse lower commit check reuse_one check drain",
    in: "barrier_shared",
    edits: [["barrier", "greatest"]],
    seen: ["step lower: select set_total('mail', 1);\n"],
  },
  {
    title: "a step admits by the old number beside a change that does not hold the barrier alone",
    spec: "lower-total",
    permutation: "o_begin lower reuse o_commit check reuse_one check drain",
    in: "barrier_exclusive",
    edits: [["barrier", "greatest"]],
    seen: ["settled 2 of 2, started 4,5", "running   |3,4,5"],
  },
  {
    title: "slots of a lowered total are reused without a check of the number",
    spec: "lower-total",
    permutation: "o_begin lower reuse o_commit check reuse_one check drain",
    in: "sole_gated",
    edits: [["cap", "greatest(0, g.cap::bigint - g.used)"]],
    seen: ["running   |3,4,5", "running   |4,5,6"],
  },
  {
    title: "a lowered number per key is ignored without caps that follow the limit",
    spec: "lower-and-hand-over",
    permutation: "o_begin lower done_1 o_commit check done_2 check drain",
    in: "lock_lanes",
    edits: [["cap", "x.per_key_declared"]],
    seen: ["left 3,4,5"],
  },
  {
    title: "a total is given out twice without a count under the counter's lock",
    spec: "two-claims-of-one-gate",
    permutation: "begin claim_1 claim_2 commit check drain",
    in: "lock_gates",
    edits: [["cap", "u.want"]],
    seen: ["running   |1,2,3,4", "at most 4 at once"],
  },
  {
    title: "a slot that comes back to a busy counter is lost without credits",
    spec: "credit-beside-busy-counter",
    permutation: "begin claim_2 done_1 commit check claim_5 check drain",
    in: "give_back",
    edits: [["credit", "unnest(p_gates, p_n) where false"]],
    seen: ["gate differs from holders: used 2, cap 2, held 1", "left 3,4,5,6"],
  },
  {
    title: "a task that comes back starts above a lowered number without a check of lowered limits",
    spec: "lowered-and-rollback",
    permutation: "begin cancel_3 lower claim shed admit rollback claim_more check shed admit claim_more check drain",
    in: "step",
    edits: [["lowered", "false"]],
    seen: ["running   |1,2,3", "at most 3 at once"],
  },
  {
    title: "a cancelled task is retried without a check for cancel requests",
    spec: "cancel-and-claim",
    permutation: "claim begin cancel_1 retry_1 commit due check drain",
    in: "due",
    edits: [["stop", "false"]],
    seen: ["ready        |1"],
  },
  {
    title: "a tick computed for an earlier revision of its schedule fires without the check of the revision",
    spec: "schedule-tick",
    permutation: "change fire check drain",
    in: "fire_schedule",
    edits: [["revision", ""]],
    seen: ["fired"],
  },
  {
    title: "a new limit is exceeded if a task locked by a completion is not counted",
    spec: "type-limit",
    permutation: "u_begin done_in_tx limit_2 u_rollback claim_more check drain",
    in: "set_stream_gate",
    edits: [["settling", "r skip locked"]],
    seen: ["running   |1,2,3", "at most 3 at once"],
  },
  {
    title: "a claim that commits late is lost forever without a check for workers that are gone",
    spec: "lost-reply",
    permutation: "begin claim dies reap o_claim commit check reap_late check drain",
    in: "reap_running",
    edits: [["gone", "exists (select from sluice.worker w where w.id = r.worker and w.expires_at <= sluice.clock())"]],
    seen: ["took back 0"],
  },
  {
    title: "two steps deadlock without admission in one ascending pass",
    spec: "crossed-lanes",
    permutation: "begin hold_k enqueue_3 step_2 enqueue_4 step_1(step_2) commit check drain",
    in: "step",
    edits: [
      [
        "one-pass",
        "if v_freed.lanes is not null then perform sluice.admit(v_freed.lanes, null, null, null); v_freed.lanes := null; end if;",
      ],
    ],
    seen: ["ERROR:  deadlock detected"],
  },
  {
    title: "neither of two last completions advances its run without the lock of the run",
    spec: "two-last-completers",
    permutation: "begin_1 done_1 done_2 commit_1 nodes check drain",
    in: "workflow_ended",
    edits: [["run-lock", ""]],
    seen: ["first |running|1 of 2 succeeded", "VIOLATION"],
  },
  {
    title: "a completion starts a cancelled node without the lock of the run",
    spec: "complete-against-cancel",
    permutation: "c_begin cancel done_1 c_commit nodes check drain",
    in: "workflow_ended",
    edits: [["run-lock", ""]],
    seen: ["VIOLATION"],
  },
];

/** A statement waits for a transaction that a user may leave open, or that it need not wait for. */
const waiting: readonly Mutant[] = [
  {
    title: "a claim that does not skip locked rows waits for a user's cancel",
    spec: "cancel-and-claim",
    permutation: "begin cancel_1 claim rollback claim_more check drain",
    in: "take_ready",
    edits: [["locked", ""]],
    seen: ["step claim: select claim(1, 5); <waiting ...>"],
  },
  {
    title: "a cancel that does not skip locked rows waits for a claim",
    spec: "cancel-and-claim",
    permutation: "w_begin claim cancel_1 w_commit cancel_again check drain",
    in: "cancel_take",
    edits: [["locked", ""]],
    seen: ["step cancel_1: select cancel(1); <waiting ...>"],
  },
  {
    title: "a zombie waits for the recovery of its tasks without the lease check",
    spec: "settle-and-reap",
    permutation: "dies r_begin reap done_1_2 r_commit check drain",
    in: "require_lease",
    edits: [["lease", "false and not"]],
    seen: ["step done_1_2: select complete(1, 1, 2); <waiting ...>"],
  },
  {
    title: "a recovery that does not skip locked rows waits for a settle",
    spec: "settle-and-reap",
    permutation: "w_begin done_1_2 dies reap w_commit reap_again check drain",
    in: "reap_running",
    edits: [["locked", ""]],
    seen: ["step reap: select reap(); <waiting ...>"],
  },
  {
    title: "a keeper that does not skip locked rows among due tasks waits for a user's cancel",
    spec: "two-keepers",
    permutation: "u_begin u_cancel due_1 u_rollback check drain",
    in: "due",
    edits: [["locked", ""]],
    seen: ["step due_1: select due(); <waiting ...>"],
  },
  {
    title: "a keeper that does not skip locked rows above a lowered limit waits for a user's cancel",
    spec: "two-keepers",
    permutation: "u_begin u_cancel shed_1 u_rollback check drain",
    in: "shed_holders",
    edits: [["locked", ""]],
    seen: ["step shed_1: select shed(); <waiting ...>"],
  },
  {
    title: "a step that settles waits for a busy counter unless it skips it",
    spec: "credit-beside-busy-counter",
    permutation: "begin claim_2 reuse_1 commit check claim_5 check drain",
    in: "lock_gates",
    edits: [["busy", ""]],
    seen: ["step reuse_1: select complete_and_claim(1, 5, 1); <waiting ...>"],
  },
  {
    title: "a step waits for a user's completion that locks lanes instead of leaving notes",
    spec: "open-completion",
    permutation: "begin done_in_tx reuse_2 cancel_5 keep check commit claim check drain",
    in: "settle_in_transaction",
    edits: [["notes", "perform sluice.admit(v.lanes, null, null, null)"]],
    seen: ["step reuse_2: select complete_and_claim(1, 5, 2); <waiting ...>"],
  },
];

export const mutants = [...broken, ...waiting];
