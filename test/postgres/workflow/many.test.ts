import { afterEach, expect, test } from "vitest";
import { pages } from "../../support/pages.js";
import { Play, ref } from "./play.js";

let play: Play;
afterEach(async () => {
  await play.close();
});

/** Pages that a statement looks at; what it does is undone. */
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

test(
  "a completion costs the same among a thousand items as among a hundred thousand",
  { timeout: 180_000 },
  async () => {
    const few = await costOf(1_000);
    await play.close();
    const many = await costOf(100_000);
    // Deeper indexes are all that may differ; a scan over the siblings would be a hundred times as much.
    expect(many).toBeLessThan(few * 2);
    expect(await play.db.value("select count(*)::int from sluice.workflow_task")).toBe(100_000);
  },
);

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

test("to take a node that is to be placed costs the same however many there are, ours or not", async () => {
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
