import { setTimeout as sleep } from "node:timers/promises";
// Past the public door on purpose: these are the statements that the worker issues.
import { Database } from "../../../../src/postgres/database.js";
import { register } from "../../../../src/postgres/heartbeat.js";
import { Connection } from "../../../../src/postgres/connection.js";
import { step, type Success } from "../../../../src/postgres/step.js";
import { newToken } from "../../../../src/worker/token.js";
import type { Consumer, Consumption, Input } from "../../adapter.js";
import { askNumber } from "../ask.js";
import { TYPE } from "../sluice/contract.js";
import { TUNED } from "../sluice/numbers.js";

export interface Loops {
  readonly connections: number;
  readonly keepHistory: boolean;
}

// Nobody renews it.
const LEASE_MS = 3_600_000;
const REPLY_MS_MAX = 60_000;
// When another loop has all there is.
const PAUSE_MS = 1;

export async function consume(
  { connections, keepHistory }: Loops,
  url: string,
  { work, numbers }: Consumption,
): Promise<Consumer> {
  const db = new Database({ url });
  const lines = Array.from({ length: connections }, () => new Connection(db, REPLY_MS_MAX));
  const stream = await askNumber(url, `select id as n from sluice.stream where type = '${TYPE}'`);
  const want = numbers?.["claimBatchSize"] ?? TUNED.claimBatchSize;
  const registration = {
    name: "pure-sql",
    streams: [stream],
    leaseMs: LEASE_MS,
    capacity: 1_000,
    connections: lines.length,
  };
  const { id: worker } = await register(lines[0]!, registration);
  const call = { worker, streams: [stream], want, keepHistory, from: 1 };
  const stop = new AbortController();
  let loops: Promise<void[]> | undefined;

  return {
    start: async () => {
      loops = Promise.all(lines.map((line) => loop(line, call, work, stop.signal)));
    },
    stop: async () => {
      stop.abort();
      await loops;
      for (const line of lines) await line.close();
      await db.close();
    },
  };
}

type Call = Omit<Parameters<typeof step>[1], "token" | "successes" | "tells" | "spots">;

/** Settles what it claimed before, and claims the next. */
async function loop(line: Connection, call: Call, work: Consumption["work"], stop: AbortSignal): Promise<void> {
  let successes: Success[] = [];
  while (!stop.aborted) {
    const more = { token: newToken(), successes, tells: false, spots: [] };
    const { claimed } = await step(line, { ...call, ...more });
    for (const { input } of claimed) void work(input as Input);
    if (claimed.length === 0 && successes.length === 0) await sleep(PAUSE_MS);
    successes = claimed.map((task) => ({ claim: task.claim, result: "", holds: task.holds }));
  }
}
