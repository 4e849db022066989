import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startEmbedded, type Embedded } from "../../src/embedded/index.js";
import { Sluice } from "../../src/index.js";
import { acceptedTwice, createAudit, readAudit, violations } from "../support/audit.js";
import { freshDatabase } from "../support/database.js";
import { startMember, type Member } from "../support/fleet.js";
import { lookAt, PROGRAM, scene, until, type Scene } from "../flow/scene.js";
import { contractOf, type Work, type WorkType } from "./programs/work.js";

const LEASE_MS = 1_500;
const job: WorkType = { name: "job", concurrency: 8 };
const ordered: WorkType = { name: "ordered", limits: [{ name: "tenant", perKey: 3 }] };
const types = [job, ordered];

/** Enqueues all the time, and remembers what was acknowledged; what fails is tried again under its key. */
class Producer {
  readonly acknowledged: string[] = [];
  failures = 0;
  #stopped = false;
  readonly #done: Promise<void>;

  constructor(sluice: Sluice) {
    this.#done = this.#produce(sluice);
  }

  async stop(): Promise<string[]> {
    this.#stopped = true;
    await this.#done;
    return this.acknowledged;
  }

  async #produce(sluice: Sluice): Promise<void> {
    for (let i = 0; !this.#stopped; i++) {
      const work: Work = { ms: 5, order: `o${i % 20}`, key: `k${i % 5}` };
      for (let told = false; !told;) {
        const contract = contractOf(i % 2 === 0 ? job : ordered);
        const sent = sluice.enqueue(contract, work, { idempotencyKey: `${i}` });
        told = await sent.then(
          ({ id }) => this.acknowledged.push(id) > 0,
          () => this.failures++ < 0,
        );
        await new Promise((resolve) => setTimeout(resolve, told ? 2 : 50));
      }
    }
  }
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

interface OwnServer {
  readonly url: string;
  /** pg_ctl restart -m immediate: no checkpoint, no goodbye; recovery does the rest. */
  restart(): Promise<void>;
}

/** A server that this test may kill. */
async function ownServer(): Promise<OwnServer> {
  const dataDir = mkdtempSync(join(tmpdir(), "sluice-restart-"));
  chmodSync(dataDir, 0o711);
  const port = await freePort();
  let server: Embedded = await startEmbedded({ dataDir, port });
  onTestFinished(async () => {
    await server.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
  return {
    url: server.url,
    restart: async () => {
      process.kill(server.pid, "SIGQUIT");
      await until("the server to be gone", () => !alive(server.pid));
      const again = await startEmbedded({ dataDir, port });
      await server.stop();
      server = again;
    },
  };
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

interface LogLine {
  readonly message: string;
  readonly at: number;
  readonly error?: string;
}

/** Follows what a process logs. */
function logOf(member: Member): LogLine[] {
  const lines: LogLine[] = [];
  void member.process
    .line((line) => {
      if (line.startsWith("log ")) lines.push(JSON.parse(line.slice(4)) as LogLine);
      return false;
    })
    .catch(() => {});
  return lines;
}

/** The most lines about the database that a process logged within any one second. */
function linesPerSecond(lines: readonly LogLine[]): number {
  const troubles = lines.filter(({ error }) => error !== undefined);
  return Math.max(0, ...troubles.map(({ at }) => troubles.filter((l) => l.at >= at && l.at < at + 1_000).length));
}

async function allDone(s: Pick<Scene, "sluice">, ids: readonly string[], withinMs: number): Promise<void> {
  await until(
    "all that was acknowledged to end",
    async () => (await s.sluice.counts().catch(() => null))?.succeeded === ids.length,
    withinMs,
  );
}

test("a restart of PostgreSQL loses nothing, and everything resumes by itself within 10 s", async () => {
  const [server, other] = await Promise.all([ownServer(), freshDatabase()]);
  const sluice = await Sluice.connect({ url: server.url });
  onTestFinished(async () => {
    await sluice.close();
    await other.drop();
  });
  await createAudit(other.url);
  const [sql, auditSql] = [lookAt(server.url), lookAt(other.url)];
  onTestFinished(async () => void (await Promise.all([sql.end(), auditSql.end()])));
  const config = {
    url: server.url,
    auditUrl: other.url,
    types,
    worker: { leaseMs: LEASE_MS, pollIntervalMs: 50 },
  };
  const members = await Promise.all(["one", "two"].map((name) => startMember(PROGRAM, name, config)));
  const logs = members.map(logOf);
  const producer = new Producer(sluice);
  await until("work to flow", async () => (await sluice.counts()).succeeded > 50);
  await server.restart();
  const backAt = Date.now();
  const told = producer.acknowledged.length;
  await until("the producer to get through", () => producer.acknowledged.length > told + 20, 10_000);
  const { succeeded } = await sluice.counts();
  await until(
    "work to flow again",
    async () => (await sluice.counts()).succeeded > succeeded + 20,
    10_000 - (Date.now() - backAt),
  );
  const ids = await producer.stop();
  await allDone({ sluice }, ids, 10_000);

  const audit = await readAudit(auditSql);
  expect(audit.lost(ids)).toEqual([]);
  expect(await acceptedTwice(sql)).toEqual([]);
  expect(await violations(sql)).toEqual([]);
  expect(producer.failures).toBeGreaterThan(0);
  for (const lines of logs) expect(linesPerSecond(lines), JSON.stringify(lines, null, 1)).toBeLessThanOrEqual(1);
  for (const member of members) expect(await member.end()).toBe(0);
});

const SEVER = `select count(pg_terminate_backend(pid))::int as n from pg_stat_activity
  where datname = current_database() and application_name <> 'audit' and pid <> pg_backend_pid()`;

test("severed connections lose nothing, break no order and exceed no limit", async () => {
  const s = await scene();
  const members = await s.fleet(3, { types, worker: { leaseMs: LEASE_MS, pollIntervalMs: 50 } });
  const producer = new Producer(s.sluice);
  for (let i = 0; i < 6; i++) {
    const { succeeded } = await s.sluice.counts().catch(() => ({ succeeded: 0 }));
    await until("work to flow", async () => {
      const counts = await s.sluice.counts().catch(() => null);
      return counts !== null && counts.succeeded > succeeded + 40;
    });
    expect((await s.sql.query<{ n: number }>(SEVER)).rows[0]!.n).toBeGreaterThan(0);
  }
  const ids = await producer.stop();
  await allDone(s, ids, 10_000);

  const audit = await readAudit(s.sql);
  expect(audit.lost(ids)).toEqual([]);
  expect(audit.disorder()).toEqual([]);
  expect(audit.peakOf("job")).toBeLessThanOrEqual(8);
  expect(await acceptedTwice(s.sql)).toEqual([]);
  expect(await violations(s.sql)).toEqual([]);
  for (const member of members) expect(await member.end()).toBe(0);
});

test("a database that is read-only for some seconds loses nothing, and all work resumes by itself", async () => {
  const s = await scene();
  const name = new URL(s.url).pathname.slice(1);
  await s.fleet(2, { types, worker: { leaseMs: LEASE_MS, pollIntervalMs: 50 } });
  const producer = new Producer(s.sluice);
  await until("work to flow", async () => (await s.sluice.counts()).succeeded > 50);
  // As after a failover: new connections find a read-only server.
  await s.sql.query(`alter database ${name} set default_transaction_read_only = on`);
  await s.sql.query(SEVER);
  await until("the producer to be refused for longer than the lease", () => producer.failures > 40);
  await s.sql.query(`alter database ${name} reset default_transaction_read_only`);
  const told = producer.acknowledged.length;
  await until("the producer to get through", () => producer.acknowledged.length > told + 20, 10_000);
  const ids = await producer.stop();
  await allDone(s, ids, 10_000);
  const audit = await readAudit(s.sql);
  expect(audit.lost(ids)).toEqual([]);
  expect(await acceptedTwice(s.sql)).toEqual([]);
  expect(await violations(s.sql)).toEqual([]);
});
