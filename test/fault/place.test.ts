import { expect, test } from "vitest";
import { type, workflow, type Run } from "../../src/index.js";
import { startMember, type Member } from "../support/fleet.js";
import { violations } from "../support/audit.js";
import { scene, until, type Scene } from "../flow/scene.js";
import { deadly, held } from "./programs/deadly.js";

// A process that stands still for most of its lease would be suspected of having died of its task.
const LEASE_MS = 5_000;
// Two processes die, and each time the test waits for the end of a lease.
const TIMEOUT_MS = 120_000;
const patience = { timeoutMs: 40_000 };
const harmless = deadly(() => {});
const one = workflow("one", { input: type<{ user: string }>() }, (w, input) => w.task("one", harmless, input));

/** A worker process that runs the innocent task. */
async function join(s: Scene, name: string): Promise<Member> {
  const config = { url: s.url, leaseMs: LEASE_MS };
  const member = await startMember("test/fault/programs/deadly.ts", name, config);
  await member.process.line((line) => line === "holds");
  return member;
}

/** Runs that workers place, all of them to be seen at the same moment. */
async function started(s: Scene, ...users: string[]): Promise<Run[]> {
  await s.sluice.start(one, { user: "known" });
  const tx = await s.sql.connect();
  try {
    await tx.query("begin");
    const runs: Run[] = [];
    for (const user of users) runs.push(await s.sluice.start("one", { user }, { tx }));
    await tx.query("commit");
    return runs;
  } finally {
    tx.release();
  }
}

test(
  "a key function that kills its process fails its node eventually, and other nodes and tasks continue",
  { timeout: TIMEOUT_MS },
  async () => {
    const s = await scene();
    await s.sluice.enqueue(held);
    const first = await join(s, "first");
    const [bad, ...good] = await started(s, "bad", "a", "b");
    await first.process.exit;
    // It has been so for a while.
    await s.sql.query("update sluice.workflow_unplaced set tries = 8 where run = $1", [bad!.id]);
    const second = await join(s, "second");
    for (const run of good) await run.result(patience);
    const dueNow = "update sluice.workflow_unplaced set due_at = 'epoch' where run = $1 and tries = $2";
    const due = (tries: number): Promise<unknown> =>
      until("it to be put off", async () => (await s.sql.query(dueNow, [bad!.id, tries])).rowCount, patience.timeoutMs);
    await due(9);
    await second.process.exit;
    const third = await join(s, "third");
    await due(10);
    await expect(bad!.result(patience)).rejects.toMatchObject({
      code: "workflow_failed",
      details: { nodes: [{ error: { code: "poisoned" } }] },
    });
    expect(third.process.child.exitCode ?? third.process.child.signalCode).toBeNull();
    // The task in flight at each crash is not a suspect.
    expect((await s.sql.query("select from sluice.crash")).rows).toEqual([]);
    expect(await violations(s.sql)).toEqual([]);
  },
);
