import { afterEach, describe, expect, test } from "vitest";
import { refusal } from "../../support/sql.js";
import { Play, type InHand } from "./play.js";

let play: Play;
afterEach(async () => {
  expect(await play.violations()).toEqual([]);
  await play.close();
});

const open = async (): Promise<void> =>
  void (play = await Play.open({ parent: { concurrency: 1 }, item: {} }));
const RECORD = "\u001e";

/** What ctx.map does: finds its fan-out or makes it with all its tasks, in one transaction. */
async function map(
  parent: InHand,
  name: string,
  n: number,
  window = 2,
): Promise<{ run: string; fresh: boolean }> {
  await play.db.begin();
  const [made] = await play.db.rows<{ run: string; fresh: boolean }>(
    "select run, fresh from sluice.workflow_map($1, $2, $3, $4, $5, $6, $7, 'finish')",
    [play.worker.id, parent.id, parent.token, name, play.streamOf("item"), n, window],
  );
  if (made!.fresh && n > 0) {
    const inputs = Array.from({ length: n }, (_, i) => String(i)).join(RECORD);
    await play.db.value("select sluice.workflow_place($1, 1::smallint, 0, $2, 0, 25, $3)", [
      made!.run,
      play.streamOf("item"),
      inputs,
    ]);
    await play.db.value("select sluice.workflow_placed($1, 1::smallint)", [made!.run]);
  }
  await play.db.commit();
  return made!;
}

async function sleep(parent: InHand, ...runs: string[]): Promise<void> {
  await play.db.value("select sluice.settle($1, $2, $3, '{w}', '{0}', $4)::text", [
    play.worker.id,
    [parent.id],
    [parent.token],
    JSON.stringify(runs.map(Number)),
  ]);
  play.hand = play.hand.filter((h) => h.id !== parent.id);
}

async function begin(): Promise<InHand> {
  await play.db.enqueue(play.streamOf("parent"));
  const [parent] = await play.claim();
  return parent!;
}

/** Without the parent, which the test itself ends. */
const items = (t: InHand): { result: unknown } | "keep" =>
  t.type === "item" ? { result: (t.input as number) * 2 } : "keep";

describe("a handler that fans out", () => {
  test("sleeps without its slots, wakes when its children are through, and finds what they came to", async () => {
    await open();
    const parent = await begin();
    const { run } = await map(parent, "pages", 5);
    await sleep(parent, run);
    expect(await play.scene.state(parent.id)).toBe("waiting");
    // Its type lets one run at once: another runs while it waits.
    await begin();
    const other = play.hand.find((t) => t.type === "parent");
    await play.settle(other!, { result: 1 });
    await play.drain(items);
    expect(play.peak.get("item")).toBe(2);
    const again = play.hand.find((t) => t.type === "parent")!;
    expect([again.id, again.attempt]).toEqual([parent.id, 1]);
    expect(await map(again, "pages", 5)).toEqual({ run, fresh: false });
    expect(await play.result(Number(run))).toMatchObject({ results: [0, 2, 4, 6, 8] });
    await play.settle(again, { result: 1 });
  });

  test("does not sleep if its children ended before it could", async () => {
    await open();
    const parent = await begin();
    const { run } = await map(parent, "pages", 2);
    await play.drain(items);
    await sleep(parent, run);
    const [again] = await play.claim();
    expect(again!.id).toBe(parent.id);
    await play.settle(again!, { result: 1 });
  });

  test("of nothing is through at once", async () => {
    await open();
    const parent = await begin();
    const { run } = await map(parent, "none", 0);
    expect(await play.state(Number(run))).toBe("succeeded");
    await sleep(parent, run);
    expect((await play.claim()).length).toBe(1);
    await play.settle(play.hand[0]!, { result: 1 });
  });

  test("with two names waits for either, and finds each again", async () => {
    await open();
    const parent = await begin();
    const one = await map(parent, "one", 1);
    const two = await map(parent, "two", 1);
    await sleep(parent, one.run, two.run);
    const [first, second] = await play.claim();
    await play.settle(first!, { result: 1 });
    const [again] = await play.claim();
    expect(again!.id).toBe(parent.id);
    await sleep(again!, two.run);
    expect(await play.claim()).toEqual([]);
    await play.settle(second!, { result: 1 });
    expect((await play.claim()).map((t) => t.id)).toEqual([parent.id]);
    await play.settle(play.hand[0]!, { result: 1 });
  });

  test("resumes after a crash without doing finished items again", async () => {
    await open();
    await play.db.enqueue(play.streamOf("parent"));
    const crashed = await play.db.register([play.streamOf("parent")]);
    const first = play.worker;
    play.worker = crashed;
    const [parent] = await play.claim();
    const { run } = await map(parent!, "pages", 4);
    play.worker = first;
    await play.settle((await play.claim(1))[0]!, { result: 1 });
    await play.db.rows(
      "update sluice.worker set expires_at = sluice.clock() - interval '1 s' where id = $1",
      [crashed.id],
    );
    await play.db.reap();
    play.hand = [];
    const again = (await play.claim()).find((t) => t.type === "parent")!;
    expect(await map(again, "pages", 4)).toEqual({ run, fresh: false });
    await sleep(again, run);
    await play.drain(items);
    expect(play.started.filter((t) => t.type === "item").map((t) => t.input)).toEqual([0, 1, 2, 3]);
    await play.settle(
      play.hand.find((t) => t.type === "parent")!,
      { result: 1 },
    );
  });

  test("is cancelled while it sleeps: its children are cancelled too", async () => {
    await open();
    const parent = await begin();
    const { run } = await map(parent, "pages", 4);
    await sleep(parent, run);
    expect(await play.db.cancel([parent.id])).toEqual(["cancelled"]);
    await play.keeper();
    await play.drain();
    expect(await play.state(Number(run))).toBe("cancelled");
    expect(play.started.filter((t) => t.type === "item")).toEqual([]);
  });

  test("is cancelled at the moment in which it goes to sleep: it does not sleep on", async () => {
    await open();
    const [other] = await play.scene.sessions(1);
    const parent = await begin();
    const { run } = await map(parent, "pages", 4);
    await play.db.begin();
    await sleep(parent, run);
    // It runs, as far as anybody else can see.
    expect(await other.cancel([parent.id])).toEqual(["asked"]);
    await play.db.commit();
    await play.keeper();
    expect(await play.scene.state(parent.id)).toBe("cancelled");
    await play.drain();
    expect(await play.state(Number(run))).toBe("cancelled");
  });

  test("must hold its task", async () => {
    await open();
    const parent = await begin();
    await play.settle(parent, { result: 1 });
    expect(await refusal(map(parent, "pages", 1))).toBe("lease_lost");
    await play.db.rollback();
  });
});
