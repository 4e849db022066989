import { expect, test } from "vitest";
import { contractOf, type Work, type WorkType } from "../fault/programs/work.js";
import { acceptedTwice, readAudit, violations, type Audit } from "../support/audit.js";
import { ended, scene, type Scene } from "./scene.js";

/** Checks what holds under every limit: no task is lost or runs twice, and every slot is accounted for. */
async function sound(s: Scene, ids: readonly string[]): Promise<Audit> {
  const audit = await readAudit(s.sql);
  expect(audit.lost(ids)).toEqual([]);
  expect(audit.twice()).toEqual([]);
  expect(await acceptedTwice(s.sql)).toEqual([]);
  expect(await violations(s.sql)).toEqual([]);
  return audit;
}

const works = (count: number, of: (i: number) => Work): Work[] => Array.from({ length: count }, (_, i) => of(i));

test("at most one task runs at once under a limit of 1, whether total, per key or the type's own", async () => {
  const s = await scene();
  const kinds: WorkType[] = [
    { name: "own", concurrency: 1 },
    { name: "total", limits: [{ name: "one", total: 1 }] },
    { name: "keyed", limits: [{ name: "each", perKey: 1 }] },
  ];
  await s.fleet(3, { types: kinds, worker: { pollIntervalMs: 20 } });
  const many = await Promise.all(
    kinds.map((kind) =>
      s.sluice.enqueueMany(
        contractOf(kind),
        works(80, (i) => ({ ms: 1 + (i % 10), key: "k" })),
      ),
    ),
  );
  await ended(s, 240);
  const audit = await sound(
    s,
    many.flatMap((m) => m.ids()),
  );
  expect(["own", "one", "each:k"].map((key) => audit.peakOf(key))).toEqual([1, 1, 1]);
});

test("exactly 4 tasks run at once under a shared total of 4", async () => {
  const s = await scene();
  // A total of 4 for both types, 3 per key, and a concurrency of 2 for the second type.
  const shared = { name: "shared", total: 4 };
  const wide: WorkType = { name: "wide", limits: [{ name: "tenant", perKey: 3 }, shared] };
  const slim: WorkType = { name: "slim", concurrency: 2, limits: [shared] };
  await s.fleet(3, { types: [wide, slim], worker: { pollIntervalMs: 20 } });
  // The first 4 tasks of the first type wait for each other. Tasks of the other type end and free their slots.
  const some = await s.sluice.enqueueMany(
    contractOf(wide),
    works(200, (i) => ({ ms: 5 + (i % 15), key: `tenant ${i % 3}`, do: "meet", beside: 4 })),
  );
  const others = await s.sluice.enqueueMany(
    contractOf(slim),
    works(100, (i) => ({ ms: 5 + (i % 15) })),
  );
  await ended(s, 300);
  const audit = await sound(s, [...some, ...others]);
  expect(audit.peakOf("shared")).toBe(4);
  expect(audit.peakOf("slim")).toBe(2);
  for (const tenant of [0, 1, 2]) expect(audit.peakOf(`tenant:tenant ${tenant}`)).toBeLessThanOrEqual(3);
});

test("a limit per key holds for each key, independently of the other keys", async () => {
  const s = await scene();
  const tenants: WorkType = { name: "tenants", limits: [{ name: "tenant", perKey: 3 }] };
  await s.fleet(3, { types: [tenants], worker: { pollIntervalMs: 20 } });
  // The first 60 tasks wait for each other: 3 of every key.
  const inputs = works(600, (i) => ({
    ms: 10 + (i % 30),
    key: `${i % 20}`,
    do: "meet",
    beside: 60,
  }));
  const ids = (await s.sluice.enqueueMany(contractOf(tenants), inputs)).ids();
  await ended(s, ids.length);
  const audit = await sound(s, ids);
  expect(works(20, () => ({ ms: 0 })).map((_, i) => audit.peakOf(`tenant:${i}`))).toEqual(
    Array.from({ length: 20 }, () => 3),
  );
});

test("99 unlimited types are not delayed by one limited type, whose limit holds", async () => {
  const s = await scene();
  const free: WorkType[] = Array.from({ length: 99 }, (_, i) => ({ name: `free-${i}` }));
  const limited: WorkType = { name: "limited", concurrency: 5 };
  const ids = (
    await s.sluice.enqueueMany(
      contractOf(limited),
      works(600, () => ({ ms: 10, do: "meet", beside: 5 })),
    )
  ).ids();
  for (const about of free) {
    const many = await s.sluice.enqueueMany(
      contractOf(about),
      works(6, () => ({ ms: 5 })),
    );
    ids.push(...many);
  }
  // Workers start when all tasks are enqueued, the limited ones first.
  await s.fleet(3, { types: [limited, ...free], worker: { pollIntervalMs: 20 } });
  await ended(s, ids.length);
  const audit = await sound(s, ids);
  expect(audit.peakOf("limited")).toBe(5);
  // The unlimited tasks overtook the limited ones.
  const lastOf = (is: (name: string) => boolean): number =>
    Math.max(...audit.runs.filter((run) => is(run.type)).map((run) => run.end!));
  expect(lastOf((name) => name !== "limited")).toBeLessThan(lastOf((name) => name === "limited"));
});

test("limits of 500 and more are reached and never exceeded", { timeout: 120_000 }, async () => {
  const s = await scene();
  const own: WorkType = { name: "own", concurrency: 500 };
  const crowd: WorkType = { name: "crowd", limits: [{ name: "total", total: 531 }] };
  // No worker runs yet: the first claims find a backlog.
  const ids = await Promise.all(
    [own, crowd].map((kind) =>
      s.sluice.enqueueMany(
        contractOf(kind),
        // The first wave waits until it is complete; later tasks take 50 ms each.
        works(2_500, () => ({ ms: 50, do: "meet", beside: kind === own ? 500 : 531 })),
      ),
    ),
  );
  for (const kind of [own, crowd]) {
    const fleet = await s.fleet(3, { types: [kind], worker: { claimBatchSize: 200 } });
    await ended(s, kind === own ? 2_500 : 5_000, 50_000);
    await Promise.all(fleet.map((member) => member.kill()));
  }
  const audit = await sound(
    s,
    ids.flatMap((many) => many.ids()),
  );
  expect(audit.peakOf("own")).toBe(500);
  expect(audit.peakOf("total")).toBe(531);
});
