import { expect, test } from "vitest";
import { issueClaim } from "../../src/core/claim.js";
import { silentLogger } from "../../src/core/ports.js";
import { noMeter } from "../../src/worker/metrics/meter.js";
import { Outbox } from "../../src/worker/outbox.js";
import { Permits } from "../../src/worker/permits.js";
import { IdleConnections } from "../../src/worker/idle-connections.js";
import { Session } from "../../src/worker/session.js";
import { Settler } from "../../src/worker/settler.js";
import { Splitter } from "../../src/worker/split.js";

test("a connection that failed to settle is used last", async () => {
  const asked: string[] = [];
  const line = (name: string, works: boolean): never => {
    const run = async (): Promise<object[]> => {
      asked.push(name);
      if (!works) throw Object.assign(new Error("connection terminated"), { code: "ECONNRESET" });
      return Promise.resolve([{ settled: "7" }]);
    };
    return { run } as never;
  };
  const clock = { now: (): number => 0 };
  const [outbox, permits, session] = [new Outbox(), new Permits(1), new Session("1", 1e9)];
  const connections = [line("good", true), line("bad", false)];
  const idleConnections = new IdleConnections({ connections, clock, meter: noMeter });
  const shared = { outbox, permits, clock, log: silentLogger };
  const splitter = new Splitter({ ...shared, stopped: () => false, onDue: () => {} });
  const settler: Settler = new Settler({
    ...shared,
    idleConnections,
    splitter,
    meter: noMeter,
    onLost: () => {},
    onTrouble: () => {},
    onRefused: () => {},
    onOver: () => settler.pump(),
  });
  permits.take(1);
  const claim = issueClaim("7", "70");
  outbox.addOther(session, { claim, kind: "fail", delayMs: 0, outcome: "{}" });
  settler.pump();
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(asked).toEqual(["bad", "good"]);
});
