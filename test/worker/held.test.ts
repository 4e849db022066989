import { EventEmitter } from "node:events";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Backend } from "../../src/postgres/backend.js";
import { HeldConnection, type Lending } from "../../src/worker/held.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("probes of a held connection do not overlap", async () => {
  const begun = [{}, { rows: [{ pid: 1, began: "1" }] }];
  const client = Object.assign(new EventEmitter(), {
    query: (text: string) => (text.startsWith("begin") ? Promise.resolve(begun) : never),
    release: () => {},
    connection: { stream: { destroy: () => (destroyed = true) } },
  });
  const never = new Promise<never>(() => {});
  let destroyed = false;
  const answers: ((found: Backend) => void)[] = [];
  const look = (): Promise<Backend> => new Promise((resolve) => answers.push(resolve));
  const lending = {
    pool: { connect: () => Promise.resolve(client) },
    replyMsMax: 1_000,
    probe: { look, end: () => Promise.resolve() },
  } as unknown as Lending;
  const held = await HeldConnection.open({} as never, lending);
  await held.begin();
  void held.tx.query("select 1");
  // The keeper's connection is busy for five looks.
  await vi.advanceTimersByTimeAsync(2_600);
  expect(answers).toHaveLength(1);
  answers[0]!({ idle: true, since: "then" });
  await vi.advanceTimersByTimeAsync(1);
  expect(destroyed).toBe(false);
  await vi.advanceTimersByTimeAsync(500);
  answers[1]!({ idle: true, since: "then" });
  await vi.advanceTimersByTimeAsync(1);
  expect(destroyed).toBe(true);
  held.giveBack();
});
