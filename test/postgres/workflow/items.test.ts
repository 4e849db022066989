import { afterEach, expect, test } from "vitest";
import { CANCELLED_FOR_ANOTHER_ITEM } from "../../../src/core/map.js";
import { pages } from "../../support/pages.js";
import { Play, ref, type InHand } from "./play.js";

let play: Play;
afterEach(async () => {
  await play.close();
});

interface Page {
  readonly items: readonly {
    readonly index: number;
    readonly task: string;
    readonly state: string;
    readonly error: { readonly message: string | null; readonly reason: string | null } | null;
  }[];
  readonly next: number | null;
}

/** A page as the library requests it. `look` is the maximum of items to examine for a state. */
async function page(
  run: number,
  search: { state?: string; after?: number; max?: number; look?: number } = {},
): Promise<Page> {
  const { state = null, after = -1, max = 100, look = 10_000 } = search;
  const text = "select items, next from sluice.workflow_item_page($1, 'each', $2, $3, $4, $5)";
  const [row] = await play.db.rows<Page>(text, [run, state, after, max, look]);
  return row!;
}

const fan = (n: number, onError: "failFast" | "finish" | "collect", window = 3): Promise<number> =>
  play.run({
    each: [
      "each",
      {
        type: "item",
        items: Array.from({ length: n }, (_, i) => i),
        input: ref("item"),
        window,
        onError,
      },
    ],
  });

test("items are listed with their state", async () => {
  play = await Play.open({ item: {} });
  const run = await fan(8, "collect", 4);
  const hand = await play.claim(3);
  await play.settle(hand[0]!, { result: 1 });
  await play.settle(hand[1]!, { fail: "no" });
  await play.db.rows("select * from sluice.cancel(array[$1]::bigint[], 'not that')", [
    (await play.members(run))[7]!.id,
  ]);
  const { items, next } = await page(run);
  expect(next).toBeNull();
  expect(items.map(({ index, state }) => [index, state])).toEqual([
    [0, "succeeded"],
    [1, "failed"],
    [2, "running"],
    [3, "ready"],
    [4, "ready"],
    [5, "ready"],
    [6, "waiting"],
    [7, "cancelled"],
  ]);
  expect(items.map(({ error }) => error?.message ?? error?.reason)).toEqual([
    undefined,
    "no",
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
    "not that",
  ]);
  expect(items.map(({ task }) => Number(task))).toEqual((await play.members(run)).map(({ id }) => id));
  await play.drain();
});

test("a page of items in one state reads a bounded number, and returns where to continue", async () => {
  play = await Play.open({ item: {} });
  const run = await fan(20, "collect", 20);
  const bad = [3, 4, 17];
  await play.drain(({ input }: InHand) => (bad.includes(input as number) ? { fail: "no" } : { result: input }));
  const failed = async (after: number, max: number, look: number): Promise<unknown> => {
    const { items, next } = await page(run, { state: "failed", after, max, look });
    return [items.map(({ index }) => index), next];
  };
  expect(await failed(-1, 100, 20)).toEqual([bad, null]);
  expect(await failed(-1, 100, 5)).toEqual([[3, 4], 4]);
  expect(await failed(4, 100, 5)).toEqual([[], 9]);
  expect(await failed(9, 100, 5)).toEqual([[], 14]);
  expect(await failed(14, 100, 5)).toEqual([[17], null]);
  // A full page: the next one starts after its last item.
  expect(await failed(-1, 1, 10)).toEqual([[3], 3]);
  expect(await failed(3, 1, 10)).toEqual([[4], 4]);
  expect(await failed(14, 1, 5)).toEqual([[17], 17]);
  expect(await failed(17, 1, 5)).toEqual([[], null]);
});

test("a page of items costs the same however many items there are, wherever it starts", async () => {
  play = await Play.open({ item: {} });
  const cost = async (run: number, after: number): Promise<number> => {
    await play.db.begin();
    const seen = await pages(
      (text) => play.db.rows(text),
      `select * from sluice.workflow_item_page(${run}, 'each', null, ${after}, 100, 10000)`,
    );
    await play.db.rollback();
    return seen;
  };
  const [small, large] = [await fan(200, "finish"), await fan(50_000, "finish")];
  await play.keeper();
  await play.db.script("analyze");
  const few = await cost(small, -1);
  expect(few).toBeGreaterThan(100);
  for (const after of [-1, 25_000, 49_890]) expect(await cost(large, after)).toBeLessThan(few * 2 + 50);
});

test("a failFast fan-out blames the item that a user cancelled, not those cancelled because of it", async () => {
  play = await Play.open({ item: {} });
  const run = await fan(8, "failFast", 2);
  const members = await play.members(run);
  await play.db.rows("select * from sluice.cancel(array[$1]::bigint[], 'by hand')", [members[5]!.id]);
  await play.drain();
  expect(await play.nodes(run)).toEqual({ each: "cancelled" });
  expect(await play.db.rows("select * from sluice.workflow_failures($1, 10)", [run])).toEqual([
    { node: "each", state: "cancelled", item: 5, error: { reason: "by hand" }, recovered: false },
  ]);
  expect(await play.errorOf(run, "each")).toEqual({ reason: "by hand" });
  const { items } = await page(run);
  const reasons = items.map(({ error }) => error!.reason);
  expect(reasons.filter((reason) => reason === "by hand")).toHaveLength(1);
  expect(new Set(reasons)).toEqual(new Set(["by hand", CANCELLED_FOR_ANOTHER_ITEM]));
});
