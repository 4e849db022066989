// A deploy in the middle of work: several processes bring the schema up to date at once.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type pg from "pg";
import { Sluice } from "../../src/index.js";
import type { Fault, Stage } from "../stage.js";
import { onServer, unlessAway } from "./administrator.js";

const program = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
const endsWithinMs = 30_000;
const lockForMs = 1_000;
const lookEveryMs = 20;
const waitedForWithinMs = 5_000;

const lock = "select pg_advisory_xact_lock(hashtextextended('sluice migrate sluice', 0))";
const behindUs = `select count(*)::int as n from pg_stat_activity
  where wait_event_type = 'Lock' and pg_backend_pid() = any (pg_blocking_pids(pid))`;
const digest = "select digest from sluice.installed where name = 'ring'";
const functions = `select pg_get_functiondef(p.oid) as text from pg_proc p
  where p.pronamespace = 'sluice'::regnamespace and p.prokind = 'f' order by p.proname, p.oid`;

export const migrate: Fault = {
  name: "migrate",
  about: "`sluice migrate` and two connects wait for the lock of a migration that replaces every function",
  disturbs: "work",
  holdsLocks: true,
  bite: async (stage) => {
    const [replaced, ...others] = await Promise.all([
      onServer(stage, (client) => replaceFunctions(stage, client)),
      runProgram(stage),
      connectAnew(stage),
      connectAnew(stage),
    ]);
    // Without a replacement that was waited for, the others have only looked at the version.
    return replaced === true ? others.reduce((sum, one) => sum + one, 1) : 0;
  },
};

/** What every process does when it starts, unless told not to. */
async function connectAnew(stage: Stage): Promise<number> {
  const connected = await unlessAway(async () => {
    const sluice = await Sluice.connect({
      url: stage.server.url,
      apiConnections: 1,
      listen: false,
    });
    await sluice.close();
    return 1;
  });
  return connected ?? 0;
}

/** 1 if it has found nothing to do, 0 if the server was away. */
async function runProgram(stage: Stage): Promise<number> {
  const args = ["--import", "tsx", program, "migrate", "--json", "--url", stage.server.url];
  try {
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: endsWithinMs });
    const { version, applied } = JSON.parse(stdout) as { version: number; applied: string[] };
    if (applied.length > 0) throw new Error(`sluice migrate applied again: ${applied.join(" ")}`);
    return version > 0 ? 1 : 0;
  } catch (e) {
    const said = (e as { stderr?: string }).stderr ?? "";
    if (/"code":"database_(unavailable|busy)"/.test(said)) return 0;
    throw e;
  }
}

/**
 * What a migration does, under the lock that migrations take: here it replaces each function by itself,
 * so that every plan that a worker's connection keeps is made anew. True if that was committed, and
 * somebody was seen waiting for the lock.
 */
async function replaceFunctions(stage: Stage, client: pg.Client): Promise<boolean> {
  // A schema that lacks nothing is only looked at: something must be missing for the others to wait.
  const { rows: known } = await client.query<{ digest: string }>(digest);
  await client.query("update sluice.installed set digest = 'stale' where name = 'ring'");
  await client.query("begin");
  await client.query(lock);
  await stage.pause(lockForMs);
  const waitedFor = await untilWaitedFor(stage, client);
  const { rows } = await client.query<{ text: string }>(functions);
  for (const { text } of rows) await client.query(text);
  await client.query("update sluice.installed set digest = $1 where name = 'ring'", [known[0]!.digest]);
  await client.query("commit");
  return waitedFor && rows.length > 0;
}

async function untilWaitedFor(stage: Stage, client: pg.Client): Promise<boolean> {
  const end = performance.now() + waitedForWithinMs;
  for (;;) {
    const { rows } = await client.query<{ n: number }>(behindUs);
    if (rows[0]!.n > 0) return true;
    if (stage.signal.aborted || performance.now() > end) return false;
    await stage.pause(lookEveryMs);
  }
}
