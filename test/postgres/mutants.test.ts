import { describe, expect, test } from "vitest";
import { migrationText, mutate, type Mutation } from "./mutation.js";
import {
  completionBesideNewLimit,
  completionStaysOpen,
  noLease,
  otherIsolation,
  replyIsLost,
  sameIdTwice,
  suspectOfOneGate,
} from "./schedules/fence.js";
import { badLanes, craftedKeys, imitatedKeys } from "./schedules/keys.js";
import {
  backAboveTheNumber,
  busyCounter,
  claimBesideSet,
  concurrencyAdded,
  concurrencyAddedBesideCompletion,
  gatesThatAddUp,
  lateRollback,
  loweredPerKey,
  loweredWhileRunning,
  missingGate,
  raisedWithWaiters,
  rebornAfterChange,
  setBesideBirth,
  setBesideReuse,
  twoClaimsOfOneGate,
} from "./schedules/numbers.js";
import { betterElsewhere, nobodyForTheBetter } from "./schedules/rivals.js";
import { observe, wanted, type Schedule } from "./schedules/schedule.js";
import {
  cancelBesideHandOver,
  cancelOfWaiterAborts,
  crossedLanes,
  completionIsNotCommitted,
  HELD_OPEN,
  headIsLocked,
  laneVanishes,
  twoHandOvers,
  twoLimitsOfOneLevel,
  twoLooksAtAnOrderKey,
  unservedKeepsOrder,
} from "./schedules/waiters.js";

import {
  cancelOfSleeperRollsBack,
  cancelWhilePlaced,
  completedInTransaction,
  firstFails,
  handedBackWhileAsked,
  historyOff,
  retriedBesideItsBranch,
  sleepBesideLastChild,
  sweptWhileItLives,
  failBesideHandBack,
  twoFail,
  twoFree,
  twoLastCompleters,
} from "./workflow/schedules.js";

interface Mutant extends Mutation {
  /** As in its `guard:` comment, if it has one. */
  readonly guard: string;
  readonly schedule: Schedule;
  /** What goes wrong without the guard. */
  readonly seen: object;
}

const mutants: readonly Mutant[] = [
  {
    guard: "isolation",
    in: "barrier_shared",
    edits: [["<> 'read committed'", "= 'never'"]],
    schedule: otherIsolation("repeatable read"),
    seen: { answer: "accepted", claimedAfter: [] },
  },
  {
    guard: "lease",
    in: "require_lease",
    edits: [["if not exists", "if false and not exists"]],
    schedule: noLease,
    seen: { unregistered: "accepted", claim: "accepted", complete: "accepted" },
  },
  {
    guard: "fence",
    in: "settle_succeeded",
    edits: [[" and r.claim = u.claim", ""]],
    schedule: sameIdTwice(5),
    seen: { oldAlone: 1, oldWithResult: 0 },
  },
  {
    guard: "fence of successes without a result",
    in: "settle_succeeded",
    edits: [[" and r.claim = v.claim", ""]],
    schedule: sameIdTwice(5),
    seen: { oldAlone: 0 },
  },
  {
    guard: "fence of a few",
    in: "settle_succeeded",
    edits: [[" and r.claim = p_claims[i]", ""]],
    schedule: sameIdTwice(0),
    seen: { oldAlone: 0 },
  },
  {
    guard: "fence of every other outcome",
    in: "settle_others",
    edits: [[" and r.claim = u.claim", ""]],
    schedule: sameIdTwice(0),
    seen: { oldFailAlone: [2] },
  },
  {
    guard: "the door",
    in: "enqueue_many",
    edits: [["if p_priority is null", "if false and p_priority is null"]],
    schedule: badLanes,
    seen: { answers: { priorityNull: "23502" } },
  },
  {
    guard: "the door: attempts",
    in: "enqueue_many",
    edits: [["if p_attempts is null or", "if false and"]],
    schedule: badLanes,
    seen: { answers: { attemptsNone: "accepted" } },
  },
  {
    guard: "the door: each lane once",
    in: "insert_laned",
    edits: [["count(*) <> count(distinct lane) or", ""]],
    schedule: badLanes,
    seen: { answers: { sameLaneTwice: "accepted" }, claim: "23502" },
  },
  {
    guard: "the door: no key missing",
    in: "insert_laned",
    edits: [["bool_or(key is null or key = '') or", ""]],
    schedule: badLanes,
    seen: { answers: { keyEmptyBesideAnother: "accepted" } },
  },
  {
    guard: "the door: keys for every task",
    in: "insert_placed",
    edits: [["if v_orders is not null and", "if false and v_orders is not null and"]],
    schedule: badLanes,
    seen: { answers: { ordersForFewer: "accepted" } },
  },
  {
    guard: "the door: limits that exist",
    in: "insert_placed",
    edits: [
      [
        "if exists (select from unnest(p_limits)",
        "if false and exists (select from unnest(p_limits)",
      ],
    ],
    schedule: badLanes,
    seen: { answers: { unknownLimit: "accepted" } },
  },
  {
    guard: "lane lock",
    in: "admit",
    edits: [["order by id for update", "order by id"]],
    schedule: twoHandOvers,
    seen: { running: [3, 4, 5, 6], violations: ["slots differ from holders"] },
  },
  {
    guard: "new snapshot after the lane lock",
    in: "admit",
    edits: [
      ["order by id for update", "order by id"],
      [
        "continue when v_lanes is null;",
        "continue when v_lanes is null; perform 1 from sluice.lane where id = any (v_lanes) order by id for update;",
      ],
    ],
    schedule: twoHandOvers,
    seen: { running: [3, 4, 5, 6] },
  },
  {
    guard: "head or nothing",
    in: "admit_order",
    edits: [["order by place, id limit 1)", "order by place, id limit 1 for update skip locked)"]],
    schedule: headIsLocked("rollback"),
    seen: { claimedMeanwhile: [3] },
  },
  {
    guard: "dirty row for a locked waiter",
    in: "admit",
    edits: [["where more and taken < room", "where false"]],
    schedule: cancelOfWaiterAborts,
    seen: { claimedAfter: [], violations: ["waiter without a waker"] },
  },
  {
    guard: "dirty row for a lane that vanished",
    in: "admit",
    edits: [["where limit_id is not null and not exists", "where false and not exists"]],
    schedule: laneVanishes("perKey"),
    seen: { claimedAfter: [3], violations: ["waiter without a waker"] },
  },
  {
    guard: "dirty row for an order lane that vanished",
    in: "admit_order",
    edits: [["where l <> all (coalesce(v_locked || v_born, '{}'))", "where false"]],
    schedule: laneVanishes("order"),
    seen: { claimedAfter: [3], violations: ["waiter without a waker"] },
  },
  {
    guard: "a completion does not stay open",
    in: "settle_in_transaction",
    edits: [
      [
        "'idle_in_transaction_session_timeout', '10s'",
        "'idle_in_transaction_session_timeout', '0'",
      ],
    ],
    schedule: completionIsNotCommitted,
    seen: { before: "0", inside: "0" },
  },
  {
    guard: "order lane lock",
    in: "admit_order",
    edits: [
      ["order by n.id for update", "order by n.id"],
      [
        "if v_free is null then return; end if;",
        `if v_free is null then return; end if;
          if current_setting('sluice_test.held_open', true) = 'here' then perform pg_advisory_xact_lock(${HELD_OPEN}); end if;`,
      ],
    ],
    schedule: twoLooksAtAnOrderKey,
    seen: { running: [2, 3] },
  },
  {
    guard: "dirty row for a locked head",
    in: "admit_order",
    edits: [["select id, 0 from lane where more", "select id, 0 from lane where false"]],
    schedule: headIsLocked("rollback"),
    seen: { claimedAfter: [], violations: ["waiter without a waker"] },
  },
  {
    guard: "dirty row for a lane whose turn is over",
    in: "admit",
    edits: [["where lane >> 60 <= v_level", "where false"]],
    schedule: twoLimitsOfOneLevel,
    seen: { claimed: [], violations: ["waiter without a waker"] },
  },
  {
    guard: "an order key's tasks are not parked at the door",
    in: "insert_laned",
    edits: [["lanes[1] >> 60 > 1", "lanes[cardinality(lanes)] >> 60 > 1"]],
    schedule: unservedKeepsOrder,
    seen: { overtakes: [2] },
  },
  {
    guard: "one pass",
    in: "step",
    edits: [
      [
        "-- guard: one pass",
        "if v_lanes is not null then perform sluice.admit(v_lanes, null, null, null); v_lanes := null; end if; -- guard: one pass",
      ],
    ],
    schedule: crossedLanes,
    seen: { errors: ["40P01"] },
  },
  {
    guard: "cap check on re-use",
    in: "lock_gates",
    edits: [["greatest(0, l.room + coalesce(c.n, 0) + u.own)", "u.want"]],
    schedule: twoClaimsOfOneGate,
    seen: { running: 4 },
  },
  {
    guard: "cap check where the counter is only read",
    in: "gate_room",
    edits: [["g.cap::bigint - g.used", "greatest(0, g.cap::bigint - g.used)"]],
    schedule: loweredWhileRunning("total", ["other"]),
    seen: { claimed: [1, 1, 1, 1, 1], running: 5 },
  },
  {
    guard: "cap check where the counter is only read, by who serves one type",
    in: "sources",
    edits: [["g.cap::bigint - g.used", "greatest(0, g.cap::bigint - g.used)"]],
    schedule: loweredWhileRunning("total"),
    seen: { claimed: [1, 1, 1, 1, 1], running: 5 },
  },
  {
    guard: "slots are re-used for their own gate only",
    in: "step",
    edits: [["least(s.gate, s.stream_gate) = 0 and", ""]],
    schedule: gatesThatAddUp,
    seen: { claimedAfter: 1 },
  },
  {
    guard: "a busy counter is not waited for",
    in: "lock_gates",
    edits: [["for update skip locked", "for update"]],
    schedule: busyCounter,
    seen: { waited: true },
  },
  {
    guard: "caps follow the limit",
    in: "apply_limit",
    edits: [["where n.limit_id = p_limit and n.cap", "where false and n.cap"]],
    schedule: loweredPerKey,
    seen: { atOnce: 3 },
  },
  {
    guard: "caps follow the limit: a lane is born under the number in force",
    in: "lane_cap",
    edits: [["coalesce(l.per_key_override, l.per_key_declared)", "l.per_key_declared"]],
    schedule: rebornAfterChange,
    seen: { claimed: 5 },
  },
  {
    guard: "caps follow the limit: waiters are woken when it is raised",
    in: "apply_limit",
    edits: [["where limit_id = p_limit and used < cap", "where false"]],
    schedule: raisedWithWaiters("perKey"),
    seen: { after: 0, violations: ["waiter without a waker"] },
  },
  {
    guard: "barrier",
    in: "barrier_shared",
    edits: [["perform pg_advisory_xact_lock_shared(", "perform greatest("]],
    schedule: setBesideReuse,
    seen: { waited: false, startedAfterSet: [4, 5] },
  },
  {
    guard: "barrier: beside a lane that is born",
    in: "barrier_shared",
    edits: [["perform pg_advisory_xact_lock_shared(", "perform greatest("]],
    schedule: setBesideBirth,
    seen: { waited: false, startedAfterSet: [1, 2, 3], claimedAfter: [1, 1, 1] },
  },
  {
    guard: "barrier: whoever changes a number is alone",
    in: "barrier_alone",
    edits: [["perform pg_advisory_xact_lock(", "perform greatest("]],
    schedule: claimBesideSet("perKey"),
    seen: { waited: false, claimed: 1 },
  },
  {
    guard: "no claim above a lowered number",
    in: "step",
    edits: [["exists (select from sluice.lowered)", "false"]],
    schedule: lateRollback({ perKey: 3 }, 1, 3),
    seen: { above: 2 },
  },
  {
    guard: "no claim above a lowered number, after a task was handed back",
    in: "step",
    edits: [["exists (select from sluice.lowered)", "false"]],
    schedule: backAboveTheNumber("release"),
    seen: { claimed: [2] },
  },
  {
    guard: "what holds a slot above a lowered number goes back",
    in: "keep_lanes",
    edits: [["perform sluice.shed()", "null"]],
    schedule: lateRollback({ perKey: 3 }, 1, 3),
    seen: { order: [] },
  },
  {
    guard: "a lost reply: what is not known comes back",
    in: "release_unknown",
    edits: [["claim <> all (p_known)", "false"]],
    schedule: replyIsLost,
    seen: { released: 0, late: 0, again: [] },
  },
  {
    guard: "a lost reply: what is known stays",
    in: "release_unknown",
    edits: [["claim <> all (p_known)", "true"]],
    schedule: replyIsLost,
    seen: { released: 2 },
  },
  {
    guard: "no lane lock in a user's transaction",
    in: "settle_in_transaction",
    edits: [
      [
        "insert into sluice.dirty (lane, limit_id, freed) select l, 0, 1 from unnest(v.lanes) l;",
        "perform sluice.admit(v.lanes, null, null, null);",
      ],
    ],
    schedule: completionStaysOpen,
    seen: { blocked: ["step"] },
  },
  {
    guard: "a cancel waits for nobody",
    in: "cancel",
    edits: [["for update skip locked", "for update"]],
    schedule: cancelBesideHandOver,
    seen: { waited: true },
  },
  {
    guard: "rivals: a slot goes to the better task",
    in: "rivals",
    edits: [["return (select", "return null; return (select"]],
    schedule: betterElsewhere,
    seen: { kept: [2] },
  },
  {
    guard: "rivals: somebody must be there",
    in: "rivals",
    edits: [["and exists (", "and true or exists ("]],
    schedule: nobodyForTheBetter("gone"),
    seen: { claimed: [] },
  },
  {
    guard: "rivals: he must be alive",
    in: "rivals",
    edits: [["and w.expires_at > sluice.clock()", ""]],
    schedule: nobodyForTheBetter("expired"),
    seen: { claimed: [] },
  },
  {
    guard: "rivals: he must have room",
    in: "rivals",
    edits: [["w.capacity_available > 0 and", ""]],
    schedule: nobodyForTheBetter("full"),
    seen: { claimed: [] },
  },
  {
    guard: "rivals: he must not be leaving",
    in: "rivals",
    edits: [["not w.draining and", ""]],
    schedule: nobodyForTheBetter("draining"),
    seen: { claimed: [] },
  },
  {
    guard: "rivals: his queue must not be paused",
    in: "sources",
    edits: [["and not st.paused", ""]],
    schedule: nobodyForTheBetter("paused"),
    seen: { claimed: [] },
  },
  {
    guard: "a new limit counts what runs",
    in: "set_stream_gate",
    edits: [["used = used + v_running", "used = used"]],
    schedule: concurrencyAdded(4),
    seen: { claimed: 4, most: 7 },
  },
  {
    guard: "a new limit counts what a completion has in hand",
    in: "set_stream_gate",
    edits: [["for update of r", "for update of r skip locked"]],
    schedule: concurrencyAddedBesideCompletion,
    seen: { claimed: 1, running: 3 },
  },
  {
    guard: "a completion looks again when a new limit has moved its task",
    in: "settle_in_transaction",
    edits: [["if v.settled is null then select", "if false then select"]],
    schedule: completionBesideNewLimit,
    seen: { answer: "lease_lost", state: "running" },
  },
  {
    guard: "a counter that is missing limits nothing",
    in: "gate_room",
    edits: [["where g.id = p_gate), 2147483647)", "where g.id = p_gate), 0)"]],
    schedule: missingGate,
    seen: { shared: [], own: [] },
  },
  {
    guard: "a suspect holds one slot of one gate",
    in: "claim_suspect",
    edits: [["case when gate = any (sluice.gates_of(v_task.gate)) then 0 else gate end", "gate"]],
    schedule: suspectOfOneGate,
    seen: { used: -1, violations: ["gate differs from holders"] },
  },
  {
    guard: "keyed lane ids",
    in: "lane_id",
    edits: [["md5(p_secret || p_name)", "md5(p_name)"]],
    schedule: craftedKeys,
    seen: { claimed: [1], lanes: 1, followSecret: false },
  },
  {
    guard: "the limit is part of its keys' names",
    in: "insert_laned",
    edits: [["limit_id || E'\\x1f' || key", "key"]],
    schedule: imitatedKeys,
    seen: { lanes: 3 },
  },
  {
    guard: "run lock",
    in: "workflow_ended",
    edits: [["order by r.id for update;", "order by r.id;"]],
    schedule: twoLastCompleters,
    seen: { advanced: 0, state: "running" },
  },
  {
    guard: "placed only while it is wanted",
    in: "workflow_placed",
    edits: [["if v.state <> 'u' then", "if false then"]],
    schedule: cancelWhilePlaced,
    seen: { placed: true, tasks: 1 },
  },
  {
    guard: "members are kept",
    in: "settle_succeeded",
    edits: [["if v_any_flow then", "if false then"]],
    schedule: historyOff,
    seen: { got: null },
  },
  {
    guard: "members are pruned with their run",
    in: "prune_done",
    edits: [["and not exists (select from sluice.workflow_task w where w.id = d.id)", ""]],
    schedule: sweptWhileItLives,
    seen: { got: null },
  },
  {
    guard: "a completion in a user's transaction leaves a note",
    in: "settle_in_transaction",
    edits: [["where id = p_id;", "where id = p_id and false;"]],
    schedule: completedInTransaction,
    seen: { next: [] },
  },
  {
    guard: "a failure shuts the window",
    in: "admit_window",
    edits: [["sluice.lane_cap(p_lane, -2)", "(select cap from sluice.lane where id = p_lane)"]],
    schedule: firstFails,
    seen: { started: 1 },
  },
  {
    guard: "failures shut their windows",
    in: "admit",
    edits: [["if v_level = 3 then", "if false then"]],
    schedule: twoFail,
    seen: { started: 2 },
  },
  {
    guard: "a window is read after its lock",
    in: "admit",
    edits: [
      ["if v_level = 3 then", "if false then"],
      [
        "select id, cap - used as room",
        "select id, case when v_level = 3 then sluice.lane_cap(id, limit_id) else cap end - used as room",
      ],
    ],
    schedule: failBesideHandBack,
    seen: { started: 2 },
  },
  {
    guard: "window lock",
    in: "admit_window",
    edits: [["where n.id = p_lane for update;", "where n.id = p_lane;"]],
    schedule: twoFree,
    seen: { violations: ["slots differ from holders"] },
  },
  {
    guard: "asked until they are over",
    in: "workflow_give_up",
    edits: [["coalesce(v_pending, '{}'), p_reason where", "'{}', p_reason where false and"]],
    schedule: handedBackWhileAsked,
    seen: { counts: [0, 1, 0], state: "running" },
  },
  {
    guard: "not beside what still runs",
    in: "workflow_retry",
    edits: [["n.state in ('r', 'u', 'h')", "false"]],
    schedule: retriedBesideItsBranch,
    seen: { answer: "accepted" },
  },
  {
    guard: "a parent locks what it waits for",
    in: "workflow_ended",
    edits: [
      [
        "v_locks || array(select r from sluice.parent p, unnest(p.runs) r where p.id = any (p_slept));",
        "coalesce(v_locks, '{}');",
      ],
    ],
    schedule: sleepBesideLastChild,
    seen: { waited: false, woke: false },
  },
  {
    guard: "a parent looks again",
    in: "workflow_ended",
    edits: [["if p_slept is not null then\n    -- A child", "if false then\n    -- A child"]],
    schedule: sleepBesideLastChild,
    seen: { woke: false },
  },
  {
    guard: "parents that nobody woke",
    in: "workflow_orphans",
    edits: [
      [
        "where exists (select from sluice.workflow_run r where r.id = any",
        "where false and exists (select from sluice.workflow_run r where r.id = any",
      ],
    ],
    schedule: cancelOfSleeperRollsBack,
    seen: { woke: false },
  },
];

describe("without its guard, each goes wrong:", () => {
  test.each(mutants)("$guard", async (mutant) => {
    const seen = await observe(mutant.schedule, mutate(mutant));
    expect(seen).not.toEqual(wanted(mutant.schedule));
    expect(seen).toMatchObject(mutant.seen);
  });
});

test("every guard of the migrations has a mutant", () => {
  const guards = [...migrationText().matchAll(/-- guard: (.+?) ->/g)].map((m) => m[1]!);
  const tried = new Set(mutants.map((m) => m.guard));
  expect(guards.filter((guard) => !tried.has(guard))).toEqual([]);
  expect(guards.length).toBeGreaterThan(8);
});

test("a mutation that no longer fits the schema is an error", () => {
  expect(() => mutate({ in: "admit", edits: [["no such text", ""]] })).toThrow("does not contain");
  expect(() => mutate({ in: "nothing", edits: [] })).toThrow("no function");
});
