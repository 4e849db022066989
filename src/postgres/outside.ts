import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type pg from "pg";
import { SluiceError } from "../core/error.js";
import { within } from "../core/within.js";
import { sqlstate } from "./errors.js";
import { Lease, type LeaseTiming } from "./lease.js";
import type { Migration } from "./schema-files.js";
import { inSchema } from "./statement.js";

/** Runs `use` on a second connection, which is closed afterwards. */
type Beside = <T>(use: (client: pg.ClientBase) => Promise<T>) => Promise<T>;

export interface OutsideTiming extends LeaseTiming {
  /** A statement that waits longer than this for one lock is cancelled. */
  readonly lockWaitMs: number;
}

export interface OutsideOptions {
  readonly schema: string;
  readonly beside: Beside;
  readonly timing?: OutsideTiming | undefined;
}

// CREATE INDEX CONCURRENTLY waits for every older transaction. Meanwhile only autovacuum and other changes of the table
// wait for it. Cancelling it loses what it has built, so it may wait for long.
const TIMING: OutsideTiming = { leaseMs: 15_000, pollMs: 500, lockWaitMs: 300_000 };
const RENEWALS_PER_TERM = 5;
const TRIES_MAX = 5;
const ANSWER_MS_MAX = 5_000;
// Lock timeout, deadlock, query cancelled or statement timeout.
const IN_THE_WAY = new Set(["55P03", "40P01", "57014"]);

/** A migration in progress. */
interface Job {
  readonly client: pg.ClientBase;
  readonly schema: string;
  readonly migration: Migration;
  readonly timing: OutsideTiming;
  readonly lease: Lease;
  /** The comment that starts each statement, by which the second connection finds them. */
  readonly mark: string;
}

/**
 * Applies a migration statement by statement, without a transaction around it. One migrator at a time does so; the
 * others wait. False: another migrator has applied it.
 */
export async function applyOutside(
  client: pg.ClientBase,
  migration: Migration,
  { schema, beside, timing = TIMING }: OutsideOptions,
): Promise<boolean> {
  const holder = randomUUID();
  const lease = new Lease(schema, holder, timing.leaseMs);
  const job: Job = { client, schema, migration, timing, lease, mark: `/* sluice migrator ${holder} */ ` };
  while (!(await lease.take(client))) {
    if (await isApplied(job)) return false;
    await pause(timing.pollMs);
  }
  try {
    if (await isApplied(job)) return false;
    // Connect only now: waiting migrators need no second connection.
    await beside((second) => whileRenewed(job, second, () => inTries(job)));
    await client.query(inSchema(APPLIED, schema), [migration.number, migration.name, migration.digest]);
    return true;
  } finally {
    // The connection may be gone; then the lease expires.
    await lease.release(client).catch(() => {});
  }
}

async function isApplied({ client, schema, migration }: Job): Promise<boolean> {
  const { rowCount } = await client.query(inSchema(IS_APPLIED, schema), [migration.number]);
  return rowCount === 1;
}

/** Renews the lease over the second connection, and ends lock waits that take too long. */
async function whileRenewed(job: Job, second: pg.ClientBase, work: () => Promise<void>): Promise<void> {
  const { lease } = job;
  const over = new AbortController();
  const renewing = renew(job, second, over.signal);
  try {
    await work();
  } catch (e) {
    // The first connection may be gone.
    await lease.release(second).catch(() => {});
    throw e;
  } finally {
    over.abort();
    // A connection that was dropped silently fails only after minutes.
    await within(renewing, ANSWER_MS_MAX);
  }
}

/** A failed renewal is retried. The build continues without a lease, and the next migrator waits for it. */
async function renew({ lease, mark, timing }: Job, second: pg.ClientBase, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    await pause(timing.leaseMs / RENEWALS_PER_TERM, undefined, { signal: over }).catch(() => {});
    if (over.aborted) return;
    await lease.renew(second).catch(() => {});
    // A lock_timeout would have to be set for the session, which in a pooler serves another client a moment later.
    await second.query(CANCEL, [mark, timing.lockWaitMs]).catch(() => {});
  }
}

async function inTries(job: Job): Promise<void> {
  for (let tries = 1; ; tries++) {
    const startMs = performance.now();
    try {
      return await sendAll(job);
    } catch (e) {
      if (sqlstate(e) === "57014") await refuseTimeout(job, performance.now() - startMs);
      if (!IN_THE_WAY.has(sqlstate(e) ?? "") || tries >= TRIES_MAX) throw e;
      await pause(job.timing.pollMs * (0.5 + Math.random()));
    }
  }
}

/** Further tries are useless if the role's statement_timeout is shorter than the build. */
async function refuseTimeout({ client, migration }: Job, tookMs: number): Promise<void> {
  const { rows } = await client.query<{ ms: number }>(STATEMENT_TIMEOUT);
  const { ms } = rows[0]!;
  if (ms === 0 || tookMs < ms) return;
  throw new SluiceError(
    "database_busy",
    `migration ${migration.name} builds an index, and the statement_timeout of ${ms} ms cancelled it: ` +
      "migrate as a role without a statement_timeout (alter role ... set statement_timeout = 0)",
    { details: { migration: migration.name, statementTimeoutMs: ms } },
  );
}

async function sendAll(job: Job): Promise<void> {
  const { client, schema, migration, mark } = job;
  // guard: an index that a migrator left unfinished is built again -> test/postgres/outside.test.ts: "an index whose build was interrupted is built again by the next migrator"
  /* guard:rebuild */ await dropUnfinished(job); /* end */
  for (const text of migration.outside!) await client.query(mark + inSchema(text, schema));
}

/** Drops the migration's indexes that an earlier try left unfinished: they are written to, and never read. */
async function dropUnfinished(job: Job): Promise<void> {
  const { client, schema, mark, timing } = job;
  const giveUpAtMs = Date.now() + timing.lockWaitMs;
  let found = await unfinished(job);
  // A killed migrator leaves its statement running on the server, and that may still complete the index.
  for (; found.some(({ isBuilding }) => isBuilding) && Date.now() < giveUpAtMs; found = await unfinished(job))
    await pause(timing.pollMs);
  for (const { name } of found) await client.query(`${mark}drop index concurrently if exists "${schema}"."${name}"`);
}

interface Unfinished {
  readonly name: string;
  readonly isBuilding: boolean;
}

const INDEX = /^create (?:unique )?index concurrently if not exists "?(\w+)"?/i;

async function unfinished({ client, schema, migration }: Job): Promise<Unfinished[]> {
  const names = migration.outside!.flatMap((text) => INDEX.exec(text)?.[1] ?? []);
  const { rows } = await client.query<Unfinished>(UNFINISHED, [schema, names]);
  return rows;
}

const IS_APPLIED = "select from sluice.migration where number = $1";

// A migrator whose lease expired while it worked may find the row already written by the next one.
const APPLIED = `
  insert into sluice.migration (number, name, digest) values ($1, $2, $3) on conflict (number) do nothing`;

const UNFINISHED = `
  select c.relname::text as name,
    exists (select from pg_stat_progress_create_index p where p.index_relid = i.indexrelid) as "isBuilding"
  from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = $1 and c.relname = any ($2::text[]) and not i.indisvalid`;

const STATEMENT_TIMEOUT =
  "select (extract(epoch from current_setting('statement_timeout')::interval) * 1000)::int as ms";

const CANCEL = `
  select pg_cancel_backend(a.pid) from pg_stat_activity a
  where a.datname = current_database() and a.state = 'active' and starts_with(a.query, $1)
    and exists (select from pg_locks l where l.pid = a.pid and not l.granted
      and l.waitstart < clock_timestamp() - $2::int * interval '1 ms')`;
