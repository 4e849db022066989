import { expect, test } from "vitest";
import { issueClaim, type Claim } from "../../src/core/claim.js";
import { SluiceError } from "../../src/core/error.js";
import { silentLogger, type Logger } from "../../src/core/ports.js";
import { task } from "../../src/index.js";
import type { TaskFate } from "../../src/postgres/inspect.js";
import type { Settlement } from "../../src/postgres/settle.js";
import type { ClaimedTask } from "../../src/postgres/step.js";
import { Events, type SluiceEventName } from "../../src/worker/events.js";
import type { AnyHandler, Execution } from "../../src/worker/execution.js";
import { Reports } from "../../src/worker/reports.js";

const NAMES: readonly SluiceEventName[] = ["succeeded", "failed", "retrying", "cancelled", "stalled", "limitFull"];
const handler = task("mail", { queue: "slow" }).handle(() => {}) as unknown as AnyHandler;

interface SetUp {
  readonly fates?: (ids: readonly string[]) => Promise<readonly TaskFate[]>;
  readonly names?: ReadonlyMap<number, string>;
  readonly log?: Logger;
  readonly listens?: readonly SluiceEventName[];
}

function setUp({ fates, names = new Map(), log = silentLogger, listens = NAMES }: SetUp = {}) {
  const clock = { ms: 1_000, now: () => clock.ms };
  const events = new Events(log);
  const told: [string, Record<string, unknown>][] = [];
  for (const name of listens) events.on(name, (event) => told.push([name, { ...event }]));
  const read: (readonly string[])[] = [];
  const asked: (readonly number[])[] = [];
  const reports = new Reports({
    events,
    worker: "host:1",
    handlers: new Map([[1, handler]]),
    clock,
    log,
    fates: (ids) => (read.push(ids), (fates ?? (async () => []))(ids)),
    limitNames: async (limits) => (asked.push(limits), names),
  });
  return { clock, events, reports, told, read, asked };
}

function executionOf(id: string, attempt = 1): Execution {
  const claim = issueClaim(id, "70");
  return { claim, handler, attempt, startedMs: 900, aborted: null } as unknown as Execution;
}

const about = (id: string, attempt = 1) => ({
  id,
  type: "mail",
  queue: "slow",
  attempt,
  durationMs: 100,
  worker: "host:1",
});

function settlement(claim: Claim, kind: Settlement["kind"], outcome = ""): Settlement {
  return { claim, kind, delayMs: 5_000, outcome };
}

const fate = (id: string, state: TaskFate["state"], rest: Partial<TaskFate> = {}): TaskFate => ({
  id,
  state,
  attempt: 1,
  runAt: null,
  reason: null,
  ...rest,
});

test("without a listener nothing is kept, read or created", async () => {
  const { reports, read, asked } = setUp({ listens: [] });
  // Anything that is kept or created would read the execution.
  const untouched = new Proxy({} as Execution, {
    get: (_, name) => {
      throw new Error(`touched ${String(name)}`);
    },
  });
  reports.returned(untouched);
  reports.threw(untouched, new Error("no"));
  reports.committed(untouched);
  reports.stalled(untouched, "timeout");
  const items = [settlement(issueClaim("1", "70"), "retry")];
  reports.succeeded(items, 0);
  reports.settled(items, ["1"]);
  reports.claimed([untouched as never]);
  await reports.idle();
  expect([read, asked, reports.wantsLimits]).toEqual([[], [], false]);
});

test("a success is reported after the reply, with what it was about", () => {
  const { reports, told, clock } = setUp();
  const execution = executionOf("7");
  reports.returned(execution);
  expect(told).toEqual([]);
  clock.ms = 5_000;
  reports.succeeded([execution], 0);
  reports.succeeded([execution], 0);
  expect(told).toEqual([["succeeded", about("7")]]);
});

test("of a statement with refused successes only those are reported that the database has recorded", async () => {
  const fates = async () => [fate("1", "succeeded"), fate("2", "running"), fate("3", "succeeded", { attempt: 2 })];
  const { reports, told, read } = setUp({ fates });
  const all = ["1", "2", "3"].map((id) => executionOf(id));
  for (const execution of all) reports.returned(execution);
  reports.succeeded(all, 2);
  await reports.idle();
  expect(read).toEqual([["1", "2", "3"]]);
  expect(told).toEqual([["succeeded", about("1")]]);
});

test("if it is unknown which of several successes were refused, none is reported", async () => {
  const { reports, told } = setUp({ fates: async () => [fate("1", "succeeded"), fate("2", "succeeded")] });
  const all = ["1", "2"].map((id) => executionOf(id));
  for (const execution of all) reports.returned(execution);
  reports.succeeded(all, 1);
  await reports.idle();
  expect(told).toEqual([]);
});

test("an outcome that the database refused is not reported", async () => {
  const { reports, told } = setUp();
  const [mine, lost] = [executionOf("1"), executionOf("2")];
  for (const execution of [mine, lost]) reports.threw(execution, new Error(`no ${execution.claim.id}`));
  reports.settled([settlement(mine.claim, "fail"), settlement(lost.claim, "fail")], ["1"]);
  reports.settled([settlement(lost.claim, "retry")], []);
  await reports.idle();
  expect(told).toEqual([["failed", { ...about("1"), error: new Error("no 1") }]]);
});

test("the database decides whether a failure is retried, final or a cancel", async () => {
  const runAt = new Date("2026-01-02T03:04:05Z");
  const fates = async () => [
    fate("1", "scheduled", { runAt }),
    fate("2", "failed"),
    fate("3", "cancelled", { reason: "changed my mind" }),
  ];
  const { reports, told, read } = setUp({ fates });
  const all = ["1", "2", "3", "4"].map((id) => executionOf(id));
  const error = new Error("no");
  for (const execution of all) reports.threw(execution, error);
  const before = Date.now();
  reports.settled(
    all.map(({ claim }) => settlement(claim, "retry")),
    ["1", "2", "3", "4"],
  );
  expect(told).toEqual([]);
  await reports.idle();
  expect(read).toEqual([["1", "2", "3", "4"]]);
  expect(told.slice(0, 3)).toEqual([
    ["retrying", { ...about("1"), error, willRetryAt: runAt }],
    ["failed", { ...about("2"), error }],
    ["cancelled", { ...about("3"), reason: "changed my mind" }],
  ]);
  // It has run again and left no history.
  expect(told[3]).toMatchObject(["retrying", { id: "4" }]);
  expect((told[3]![1]["willRetryAt"] as Date).getTime() - before).toBeGreaterThanOrEqual(5_000);
});

test("a snooze is no event, unless its task was cancelled meanwhile", async () => {
  const { reports, told } = setUp({ fates: async () => [fate("1", "scheduled"), fate("2", "cancelled")] });
  const all = ["1", "2"].map((id) => executionOf(id));
  for (const execution of all) reports.threw(execution, new Error("snoozed"));
  reports.settled(
    all.map(({ claim }) => settlement(claim, "snooze")),
    ["1", "2"],
  );
  await reports.idle();
  expect(told).toEqual([["cancelled", { ...about("2"), reason: null }]]);
});

test("fates are read only for listeners that need them", async () => {
  const { reports, told, read } = setUp({ listens: ["failed"] });
  const all = ["1", "2", "3"].map((id) => executionOf(id));
  for (const execution of all) reports.threw(execution, new Error("no"));
  const kinds = ["fail", "cancel", "snooze"] as const;
  reports.settled(
    all.map(({ claim }, at) => settlement(claim, kinds[at]!, '{"reason":null}')),
    ["1", "2", "3"],
  );
  await reports.idle();
  expect(read).toEqual([]);
  expect(told).toMatchObject([["failed", { id: "1" }]]);
});

test("a fate that cannot be read is logged, and its event is omitted", async () => {
  const lines: string[] = [];
  const log = { ...silentLogger, warn: (message: string) => void lines.push(message) };
  const fates = () => Promise.reject(new Error("odd"));
  const { reports, told } = setUp({ fates, log });
  const execution = executionOf("1");
  reports.threw(execution, new Error("no"));
  reports.settled([settlement(execution.claim, "retry")], ["1"]);
  await reports.idle();
  expect([told, lines]).toEqual([[], ["events of recorded outcomes could not be emitted"]]);
});

test("the error of an aborted execution is the reason of its abort", () => {
  const { reports, told } = setUp();
  const timeout = new SluiceError("timeout", "too long");
  const execution = executionOf("1");
  execution.aborted = timeout;
  reports.stalled(execution, "timeout");
  reports.threw(execution, new Error("aborted"));
  reports.settled([settlement(execution.claim, "fail")], ["1"]);
  expect(told).toEqual([
    ["stalled", { ...about("1"), cause: "timeout", abortCode: "timeout" }],
    ["failed", { ...about("1"), error: timeout }],
  ]);
});

test("a full limit is reported once in ten seconds, and only if the task was due while it was full", async () => {
  const names = new Map([
    [3, "mail"],
    [4, "tenant"],
  ]);
  const { reports, told, clock, asked } = setUp({ names });
  const claimedWith = (waitMs: number, ...limits: [limit: number, perKey: boolean, fullMs: number][]): ClaimedTask =>
    ({
      claim: issueClaim("7", "70"),
      stream: 1,
      attempt: 1,
      passed: { waitMs, limits: limits.map(([limit, perKey, fullMs]) => ({ limit, perKey, fullMs })) },
    }) as unknown as ClaimedTask;
  const limits = async (): Promise<unknown[]> => {
    await reports.idle();
    return told.splice(0).map(([, event]) => [event["limit"], event["perKey"], event["waitMs"]]);
  };
  reports.claimed([claimedWith(500, [3, false, 900], [4, true, Infinity])]);
  expect([await limits(), asked]).toEqual([[], []]);
  reports.claimed([claimedWith(500, [3, false, 200], [4, true, -Infinity]), claimedWith(600, [3, false, 0])]);
  expect(await limits()).toEqual([
    ["mail", false, 500],
    ["tenant", true, 500],
  ]);
  clock.ms += 9_999;
  reports.claimed([claimedWith(500, [3, false, 200])]);
  expect(await limits()).toEqual([]);
  clock.ms += 1;
  reports.claimed([claimedWith(-1, [3, false, -Infinity])]);
  expect(await limits()).toEqual([["mail", false, null]]);
  expect(asked).toEqual([[3, 4], [3]]);
});
