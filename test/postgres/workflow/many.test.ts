import { afterEach, expect, test } from "vitest";
import { pages } from "../../support/pages.js";
import { observe, wanted } from "../schedules/schedule.js";
import { Play, ref } from "./play.js";
import { inputOfManyLarge } from "./standing.js";

let play: Play;
afterEach(async () => {
  await play.close();
});

/** Pages that a statement reads. Its effects are rolled back. */
async function cost(text: string, values: readonly string[]): Promise<number> {
  const filled = values.reduce((t, v, i) => t.replaceAll(`$${i + 1}`, v), text);
  await play.db.begin();
  const seen = await pages((t) => play.db.rows(t), filled);
  await play.db.rollback();
  return seen;
}

/** What a step costs that completes 20 items of a fan-out and claims the next 20. */
async function costOf(items: number): Promise<number> {
  play = await Play.open({ item: {}, after: {} });
  const run = await play.run({
    each: [
      "each",
      {
        type: "item",
        items: Array.from({ length: items }, (_, i) => i),
        input: { account: ref("item") },
        window: 20,
        onError: "finish",
      },
    ],
    last: ["task", { type: "after", after: ["each"] }],
  });
  await play.keeper();
  expect(await play.counts(run, "each")).toMatchObject({ total: items });
  await play.db.script("analyze");
  // The first steps plan what later ones keep.
  let hand = await play.claim(20);
  for (let i = 0; i < 3; i++)
    hand = await play.step(
      20,
      hand.map((t) => [t, i]),
    );
  expect(hand.length).toBe(20);
  return cost("select * from sluice.step($1, 160, $2, 20, $3, $4)", [
    play.worker.id,
    `'{${play.worker.streams.join(",")}}'`,
    `'{${hand.map((t) => t.id).join(",")}}'`,
    `'{${hand.map((t) => t.token).join(",")}}'`,
  ]);
}

test("a completion costs the same among 1,000 items as among 100,000", { timeout: 180_000 }, async () => {
  const few = await costOf(1_000);
  await play.close();
  const many = await costOf(100_000);
  // Deeper indexes are all that may differ; a scan over the siblings would be a hundred times as much.
  expect(many).toBeLessThan(few * 2);
  expect(await play.db.value("select count(*)::int from sluice.workflow_task")).toBe(100_000);
});

test("the status of a run costs the same however many items it has", async () => {
  play = await Play.open({ item: {} });
  const nodes = (n: number): Parameters<Play["run"]>[0] => ({
    each: [
      "each",
      {
        type: "item",
        items: Array.from({ length: n }, (_, i) => i),
        input: ref("item"),
        window: 5,
      },
    ],
  });
  const costOfStatus = async (n: number): Promise<number> => {
    const run = await play.run(nodes(n));
    await play.keeper();
    await play.db.script("analyze");
    return cost("select * from sluice.workflow_progress where run = $1", [String(run)]);
  };
  const few = await costOfStatus(100);
  expect(await costOfStatus(20_000)).toBeLessThan(few * 2 + 20);
});

test("taking an unplaced node costs the same however many there are, of served types or others", async () => {
  play = await Play.open({ ours: {}, other: {} });
  await play.db.rows("update sluice.contract set limit_ids = null");
  await play.run({ one: ["task", { type: "ours" }] });
  const streams = `'{${play.streamOf("ours")}}'`;
  const costs = async (): Promise<[number, number]> => {
    await play.db.script("analyze sluice.workflow_unplaced");
    const one = "select * from sluice.workflow_take($1)";
    const small = "select * from sluice.workflow_take_small($1, 1, 1000)";
    return [await cost(one, [streams]), await cost(small, [streams])];
  };
  const [one, small] = await costs();
  for (const type of ["ours", "other"])
    await play.db.rows(
      `insert into sluice.workflow_unplaced (run, node, stream, in_code, due_at)
        select n, 1, $1, true, case when n % 2 = 0 then '-infinity' else sluice.clock() + interval '1 hour' end
        from generate_series($2::int, $2 + 99999) n`,
      [play.streamOf(type), type === "ours" ? 1_000_000 : 2_000_000],
    );
  const [oneOfMany, smallOfMany] = await costs();
  expect(oneOfMany).toBeLessThan(one + 30);
  expect(smallOfMany).toBeLessThan(small + 30);
});

test("skipping the notes of a locked run costs the same however many there are", async () => {
  play = await Play.open({});
  const graph = await play.declare({ wait: ["waitFor", { event: "go" }] });
  const [held, free] = await play.start(graph, 1, 2);
  const [holder] = await play.scene.sessions(1);
  await holder.begin();
  await holder.rows("select from sluice.workflow_run where id = $1 for update", [held]);
  const seen: number[] = [];
  for (const notes of [100, 20_000]) {
    await play.db.rows("insert into sluice.workflow_note (run) select $1 from generate_series(1, $2::int)", [
      held,
      notes,
    ]);
    await play.db.value("select sluice.workflow_send($1, 'go', '1')", [free]);
    await play.db.script("analyze sluice.workflow_note");
    seen.push(await cost("select taken from sluice.workflow_process_notes(100)", []));
  }
  expect(seen[1]! - seen[0]!).toBeLessThan(50);
  await holder.rollback();
});

test("an input that is too large is refused before all of it is read", async () => {
  play = await Play.open({});
  expect(await observe(inputOfManyLarge)).toEqual(wanted(inputOfManyLarge));
});

test("a list of items may have at most 64 MiB, and is refused before it is joined", async () => {
  play = await Play.open({ root: {}, item: {} });
  const refs = Array.from({ length: 80 }, () => ref("root"));
  const run = await play.run({
    root: ["task", { type: "root" }],
    each: ["each", { type: "item", items: refs, after: ["root"] }],
  });
  const [root] = await play.claim();
  await play.settle(root!, { result: "x".repeat(900_000) });
  expect(await play.errorOf(run, "each")).toMatchObject({
    code: "input_too_large",
    message: "the rendered JSON has at least 67500226 bytes, but only 67108864 are allowed",
  });
  expect(await play.state(run)).toBe("failed");
});

test("a step scans no ended runs beside an old snapshot", async () => {
  play = await Play.open({});
  const graph = await play.declare({ nap: ["sleep", { ms: 0 }] });
  const [holder] = await play.scene.sessions(1);
  await holder.begin("repeatable read");
  await holder.rows("select from sluice.workflow_run");
  const step = `select id from sluice.step(${play.worker.id}, 16, '{}', 1)`;
  const keep = "select moved from sluice.workflow_keep(100)";
  await play.start(graph);
  const before = [await cost(step, []), await cost(keep, [])];
  await play.start(graph, ...Array.from({ length: 3_000 }, (_, i) => i));
  const after = [await cost(step, []), await cost(keep, [])];
  expect(after.map((seen, i) => seen - before[i]! < 30)).toEqual([true, true]);
  await holder.rollback();
});
