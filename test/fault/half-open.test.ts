import { expect, onTestFinished, test } from "vitest";
import { Sluice, task, type } from "../../src/index.js";
import { silentLogger } from "../../src/core/ports.js";
import { Database } from "../../src/postgres/database.js";
import { inTransaction } from "../../src/postgres/transaction.js";
import { violations } from "../support/audit.js";
import { ends } from "../support/ends.js";
import { scene, until } from "../flow/scene.js";
import { Proxy, type Exchange } from "./proxy.js";

// Long enough for a deadline of 4 s to come first, and for heartbeats on a busy machine.
const LEASE_MS = 5_000;
const STEP = "select 'a statement of the handler'";
const LAST = "select 'the last one of the handler'";

const says =
  (text: string) =>
  ({ statement }: Exchange): boolean =>
    statement.startsWith(text);

/** The completion is a statement without a name, with the worker and its token as long numbers. */
const completion = ({ statement, asked }: Exchange): boolean => statement === "" && /\d{15,}/.test(asked);

const cases: Record<string, (proxy: Proxy) => Promise<void>> = {
  // The second task gets the connection that the first has used.
  "a connection that swallows begin uses no attempt and is replaced": (proxy) => proxy.swallowAfter(says("commit")),
  "a connection that swallows a statement of the handler uses no attempt and is replaced": (proxy) =>
    proxy.swallowAfter(says("begin")),
  "a connection that swallows the completion uses no attempt and is replaced": (proxy) =>
    proxy.swallowAfter(says(LAST)),
  "a connection that swallows the commit uses no attempt and is replaced": (proxy) => proxy.swallowAfter(completion),
  "a connection that swallows the reply to the commit uses no attempt and is replaced": (proxy) =>
    proxy.swallowReply(says("commit")),
};

for (const [name, swallow] of Object.entries(cases)) {
  test(name, async () => {
    const s = await scene();
    await s.sql.query("create table effect (task text)");
    const proxy = await Proxy.start(s.url);
    const behind = await Sluice.connect({ url: proxy.url, migrate: false, logger: silentLogger });
    onTestFinished(() => behind.close());
    const job = task("job", {
      input: type<number>(),
      concurrency: 1,
      timeoutMs: null,
      retry: { attempts: 1 },
    });
    const worker = behind.worker({
      leaseMs: LEASE_MS,
      handlerConnections: 1,
      handlers: [
        job.handle((n, ctx) =>
          ctx.transaction(async (tx) => {
            await tx.query(STEP);
            await tx.query("insert into effect values ($1)", [ctx.id]);
            await tx.query(LAST);
            return n;
          }),
        ),
      ],
    });
    await worker.start();
    onTestFinished(() => worker.stop({ graceMs: 0 }));
    const swallowed = swallow(proxy);
    const ids = (await s.sluice.enqueueMany(job, [1, 2, 3])).ids();
    await swallowed;
    for (const [i, id] of ids.entries()) {
      const handle = s.sluice.task(id);
      const status = await until("its end", async () => {
        const found = await handle.status();
        return found?.state === "succeeded" || found?.state === "failed" ? found : null;
      });
      expect(status).toMatchObject({ state: "succeeded", attempt: 1, outcome: i + 1 });
    }
    const { rows } = await s.sql.query("select task from effect order by task::int");
    expect(rows.map(({ task: id }) => id as string)).toEqual(ids);
    await until("the permits to come back", () => worker.status().permitsInUse === 0);
    expect(await violations(s.sql)).toEqual([]);
  });
}

test("a transaction on a connection that swallows a statement ends, and its connection is replaced", async () => {
  const s = await scene();
  const proxy = await Proxy.start(s.url);
  const db = new Database({ url: proxy.url });
  const pool = db.pool(1);
  onTestFinished(() => {
    void pool.end();
    void db.close();
  });
  const work = (): Promise<unknown> => ends(inTransaction(db, (tx) => tx.query(STEP), pool, 500));
  for (const after of ["begin", STEP, "commit"]) {
    const swallowed = proxy.swallowAfter(says(after));
    if (after === "commit") await work();
    await expect(work()).rejects.toMatchObject({ code: "database_unavailable" });
    await swallowed;
    expect(pool.totalCount).toBe(0);
    await work();
  }
});
