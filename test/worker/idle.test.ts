import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { task } from "../../src/index.js";
import { silentLogger } from "../../src/core/ports.js";
import { Claimer } from "../../src/worker/claim.js";
import { Outbox } from "../../src/worker/outbox.js";
import { Payloads } from "../../src/worker/payloads.js";
import { Permits } from "../../src/worker/permits.js";
import { Session } from "../../src/worker/session.js";
import { scene, until, type Scene } from "../flow/scene.js";

const POLL_MS = 10;
const NEVER_MS = 60_000;

describe("a worker without tasks", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** How often it asks in a second, when it has had time to fall asleep. */
  function idle(): { asks(): Promise<number>; lose(): void } {
    let [sent, hears] = [0, true];
    const session = new Session("1", 1e9);
    const rows = (): Promise<never[]> => Promise.resolve(void sent++).then(() => []);
    const claimer = new Claimer({
      connections: [{ rows } as never],
      streams: [1],
      permits: new Permits(10),
      payloads: new Payloads(1_000_000_000),
      outbox: new Outbox(),
      executions: { completed: 0, inputLength: 0 } as never,
      claimBatchSize: 10,
      pollIntervalMs: POLL_MS,
      keepHistory: true,
      bell: true,
      listening: () => hears,
      clock: { now: () => Date.now() },
      log: silentLogger,
      current: () => session,
      holds: () => true,
      onDoubt: () => {},
      onLost: () => {},
      onUnplaced: () => {},
    });
    claimer.start();
    return {
      asks: async () => {
        await vi.advanceTimersByTimeAsync(5_000);
        sent = 0;
        await vi.advanceTimersByTimeAsync(10_000);
        return sent / 10;
      },
      lose: () => {
        hears = false;
        claimer.poll.changed();
      },
    };
  }

  test("an idle worker that listens for rings polls once a second, whatever its interval", async () => {
    expect(await idle().asks()).toBeCloseTo(1, 0);
  });

  test("a worker that has lost its listening connection polls at its interval", async () => {
    const claimer = idle();
    await claimer.asks();
    claimer.lose();
    expect(await claimer.asks()).toBeGreaterThan(50);
  });
});

/** Waits until the leader has just checked, so that its next check is most of an interval away. */
async function leaderSleeps(s: Scene): Promise<Date> {
  return until("the leader to sleep", async () => {
    const { rows } = await s.sql.query<{ at: Date }>(
      "select next_at as at from sluice.keeper where next_at > clock_timestamp() + interval '2 seconds'",
    );
    return rows[0]?.at;
  });
}

/** Whether it was seen within a few tries, of which a busy machine may spoil some. */
async function seen(look: () => Promise<boolean>): Promise<boolean> {
  for (let tries = 0; tries < 5; tries++) if (await look()) return true;
  return false;
}

describe("a keeper of a worker that never polls", () => {
  test("a task scheduled for soon starts before the next check of the leader", async () => {
    const s = await scene();
    const job = task("job");
    await s.worker({ handlers: [job.handle(() => {})], pollIntervalMs: NEVER_MS });
    const inTime = seen(async () => {
      const next = await leaderSleeps(s);
      const handle = await s.sluice.enqueue(job, undefined, { delayMs: 200 });
      await handle.result({ timeoutMs: NEVER_MS });
      return (await handle.status())!.startedAt!.getTime() < next.getTime();
    });
    expect(await inTime).toBe(true);
  });

  test("a task that is retried soon starts again before the next check of the leader", async () => {
    const s = await scene();
    const job = task("job", { retry: { attempts: 2, backoff: () => 200 } });
    const handler = job.handle((_, { attempt }) => {
      if (attempt === 1) throw new Error("once");
    });
    await s.worker({ handlers: [handler], pollIntervalMs: NEVER_MS });
    const inTime = seen(async () => {
      const next = await leaderSleeps(s);
      const handle = await s.sluice.enqueue(job);
      await handle.result({ timeoutMs: NEVER_MS });
      return (await handle.status())!.startedAt!.getTime() < next.getTime();
    });
    expect(await inTime).toBe(true);
  });
});

test("one of two workers leads, and the other takes over when it stops", async () => {
  const s = await scene();
  const job = task("job");
  const options = { handlers: [job.handle(() => {})], pollIntervalMs: NEVER_MS };
  const leader = async (): Promise<string | undefined> =>
    (await s.sql.query("select leader from sluice.keeper where until > clock_timestamp()")).rows[0]?.leader;
  const first = await s.worker({ ...options, name: "a" });
  const one = await until("a leader", leader);
  await s.worker({ ...options, name: "b" });
  await first.stop();
  await until("another leader", async () => ![undefined, one].includes(await leader()));
  const handle = await s.sluice.enqueue(job, undefined, { delayMs: 100 });
  await handle.result({ timeoutMs: NEVER_MS });
});
