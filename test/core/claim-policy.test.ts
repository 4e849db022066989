import { describe, expect, test } from "vitest";
import {
  BACKLOG_MIN,
  ClaimPolicy,
  NO_CLAIM,
  type ClaimConditions,
  type ClaimPlan,
} from "../../src/core/claim-policy.js";

const PERMITS = 100;
const CALM = { memory: false, taskDuration: false, eventLoopDelay: false };
const LOAD = { inHand: 0, completed: 0, nowMs: 0 };

function policyOf(options: { permitsMax?: number; batchSize?: number; notified?: boolean } = {}): ClaimPolicy {
  return new ClaimPolicy({ permitsMax: PERMITS, batchSize: 50, notified: true, ...options });
}

function next(policy: ClaimPolicy, at: Partial<ClaimConditions> = {}): ClaimPlan {
  return policy.next({
    permitsFree: PERMITS,
    settling: 0,
    slotsReleased: 0,
    payloadRoom: Number.MAX_SAFE_INTEGER,
    sizeMax: Number.MAX_SAFE_INTEGER,
    pressed: CALM,
    ...at,
  });
}

/** Sends the next claim. */
function send(policy: ClaimPolicy, at?: Partial<ClaimConditions>): ClaimPlan {
  const claim = next(policy, at);
  policy.sent(claim);
  return claim;
}

function answer(policy: ClaimPolicy, claim: ClaimPlan, claimed: number): void {
  policy.ended(claim);
  if (claim.want > 0) policy.learn(claim, claimed, LOAD);
}

/** Claims once per number, each answered with that many tasks. */
function claimed(policy: ClaimPolicy, ...counts: readonly number[]): ClaimPolicy {
  for (const count of counts) answer(policy, send(policy), count);
  return policy;
}

// Each state of a worker, reached in the fewest steps.
const awake = (): ClaimPolicy => policyOf();
const afterShortClaim = (): ClaimPolicy => claimed(policyOf(), 0);
const asleep = (): ClaimPolicy => claimed(policyOf(), 0, 0, 0);
const withBacklog = (): ClaimPolicy => claimed(policyOf(), 1, 4);
const notifiedOf = (tasks: number): ClaimPolicy => {
  const policy = asleep();
  policy.announce(tasks);
  return policy;
};
const woken = (): ClaimPolicy => {
  const policy = asleep();
  policy.wake();
  return policy;
};
const claiming = (of: () => ClaimPolicy): ClaimPolicy => {
  const policy = of();
  send(policy);
  policy.wake();
  return policy;
};

describe("the next claim of a worker, by its state:", () => {
  const cases: { state: string; policy: ClaimPolicy; at?: Partial<ClaimConditions>; plan: Partial<ClaimPlan> }[] = [
    { state: "awake", policy: awake(), plan: { want: 1, extra: 1, reports: false, announced: false } },
    { state: "awake, settling", policy: awake(), at: { settling: 5 }, plan: { want: 6, extra: 1, reports: false } },
    { state: "awake, another claim in flight", policy: claiming(awake), plan: NO_CLAIM },
    { state: "after a short claim", policy: afterShortClaim(), plan: { want: 1, reports: true, announced: false } },
    { state: "after a short claim, full", policy: afterShortClaim(), at: { permitsFree: 0 }, plan: NO_CLAIM },
    {
      state: "after a short claim, full, settling",
      policy: afterShortClaim(),
      at: { permitsFree: 0, settling: 5 },
      plan: { want: 5, reports: false },
    },
    {
      state: "after a short claim, without notifications",
      policy: claimed(policyOf({ notified: false }), 0),
      plan: NO_CLAIM,
    },
    { state: "with a backlog", policy: withBacklog(), plan: { want: 16, reports: false, announced: false } },
    { state: "with a backlog, another claim in flight", policy: claiming(withBacklog), plan: { want: 16 } },
    { state: "with a backlog, few bytes left", policy: withBacklog(), at: { payloadRoom: 3 }, plan: { want: 3 } },
    { state: "with a backlog, no bytes left", policy: withBacklog(), at: { payloadRoom: 0 }, plan: NO_CLAIM },
    { state: "with a backlog, slow statements", policy: withBacklog(), at: { sizeMax: 7 }, plan: { want: 7 } },
    {
      state: "with a backlog, under pressure",
      policy: claimed(withBacklog(), 16),
      at: { pressed: { ...CALM, memory: true } },
      plan: { want: 25 },
    },
    { state: "asleep", policy: asleep(), plan: NO_CLAIM },
    {
      state: "asleep, settling tasks without slots",
      policy: asleep(),
      at: { settling: 5 },
      plan: NO_CLAIM,
    },
    {
      state: "asleep, settling tasks with slots",
      policy: asleep(),
      at: { settling: 5, slotsReleased: 2 },
      plan: { want: 2, extra: 0, reports: false, announced: true },
    },
    {
      state: "asleep, notified of a few",
      policy: notifiedOf(3),
      plan: { want: 3, reports: false, announced: true },
    },
    {
      state: "asleep, notified of a few on its last permits",
      policy: notifiedOf(3),
      at: { permitsFree: 10 },
      plan: { want: 3, reports: true, announced: true },
    },
    {
      state: "asleep, notified of a few on its last bytes",
      policy: notifiedOf(3),
      at: { payloadRoom: 3 },
      plan: { want: 3, reports: true, announced: true },
    },
    {
      state: "asleep, notified of many",
      policy: notifiedOf(BACKLOG_MIN),
      plan: { want: BACKLOG_MIN, reports: true, announced: false },
    },
    { state: "asleep, notified of more than a batch", policy: notifiedOf(1_000), plan: { want: 50, reports: true } },
    { state: "asleep, woken by a poll", policy: woken(), plan: { want: 1, reports: false, announced: false } },
  ];

  test.each(cases.map((one) => [one.state, one] as const))("%s", (_, { policy, at, plan }) => {
    expect(next(policy, at)).toMatchObject(plan);
  });
});

test("claims start at 1 task, grow fourfold while they come back full, and shrink after a short one", () => {
  const policy = policyOf();
  const wants = Array.from({ length: 5 }, () => {
    const claim = send(policy);
    answer(policy, claim, claim.want);
    return claim.want;
  });
  expect(wants).toEqual([1, 4, 16, 50, 50]);
  claimed(policy, 3);
  expect(next(policy, { settling: 10 }).want).toBe(10 + 3);
});

test("a worker with 9 of 10 permits in use only replaces settled tasks", () => {
  const policy = claimed(policyOf(), 1, 4, 15);
  expect(next(policy, { settling: 3, permitsFree: 6 }).want).toBe(3);
  expect(next(policy, { settling: 3, permitsFree: 8 }).want).toBe(3);
  expect(next(policy, { settling: 3, permitsFree: 9 }).want).toBe(12);
});

test("a worker with a backlog fills its last 10 % of permits, and then only replaces settled tasks", () => {
  const policy = claimed(policyOf(), 1, 4, 16, 50);
  expect(next(policy, { permitsFree: 6 }).want).toBe(6);
  expect(next(policy, { settling: 3, permitsFree: 0 }).want).toBe(3);
  expect(next(policy, { settling: 3, permitsFree: 6 }).want).toBe(3);
});

test("a worker claims until the database has recorded it as asleep, and once more", () => {
  const policy = policyOf();
  const claims = Array.from({ length: 3 }, () => {
    const claim = send(policy);
    answer(policy, claim, 0);
    return [claim.want, claim.reports, policy.asleep];
  });
  expect(claims).toEqual([
    [1, false, false],
    [1, true, true],
    [1, false, true],
  ]);
  expect(next(policy)).toBe(NO_CLAIM);
});

test("a sleeping worker whose large claim comes back full is awake and has a backlog", () => {
  const policy = notifiedOf(10);
  claimed(policy, 10);
  expect(policy.asleep).toBe(false);
  expect(next(policy)).toMatchObject({ want: 40, reports: false });
});

test("a full reply to a claim of announced tasks does not count as a backlog", () => {
  const policy = claimed(notifiedOf(3), 3);
  expect(policy.asleep).toBe(true);
  expect(next(policy)).toBe(NO_CLAIM);
});

test("only one claim in flight reports the state of its worker", () => {
  const policy = notifiedOf(BACKLOG_MIN);
  expect(send(policy).reports).toBe(true);
  expect(next(policy, { settling: 20, slotsReleased: 20 })).toMatchObject({ want: 20, reports: false });
});

test("a report whose reply was lost is repeated with the next claim", () => {
  const policy = afterShortClaim();
  const claim = send(policy);
  policy.reportLost();
  policy.ended(claim);
  policy.wake();
  expect(policy.asleep).toBe(false);
  expect(next(policy).reports).toBe(true);
});

test("a new session is awake and claims", () => {
  const policy = asleep();
  policy.sessionBegan();
  expect(policy.asleep).toBe(false);
  expect(next(policy)).toMatchObject({ want: 1, reports: false });
});

test("a planned claim that is not sent changes nothing", () => {
  const policy = notifiedOf(3);
  expect(next(policy)).toEqual(next(policy));
});
