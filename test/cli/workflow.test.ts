import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { task, workflow } from "../../src/index.js";
import { fanOut, Hands, listener, numbers, workflowScene } from "../client/workflow-scene.js";
import type { Scene } from "../flow/scene.js";
import { freshDatabase, type TestDatabase } from "../support/database.js";
import { sluice, type Said } from "./run.js";

const waits = workflow("waits", {}, (w) => {
  const said = w.waitFor("said", "said");
  return { said };
});

/** The command on this scene's database. */
const on =
  (s: Scene) =>
  (args: string, heard?: (out: string) => void, more: readonly string[] = []): Promise<Said> =>
    sluice(["workflow", ...args.split(" "), ...more], { DATABASE_URL: s.url }, heard);

const parsed = ({ out }: Said): unknown => JSON.parse(out);

async function fanning(items: number) {
  const s = await workflowScene();
  const hands = new Hands();
  const last = listener();
  await s.worker({ handlers: [hands.handler, last.handler], pollIntervalMs: 20, leaseMs: 1_500 });
  const run = await s.sluice.start(fanOut(3, "finish"), { items: numbers(items) });
  return { s, hands, run, cli: on(s) };
}

describe("sluice workflow", () => {
  test("start takes the newest graph of a name, with an input of text or of a file, once per key", async () => {
    const { s, hands, cli } = await fanning(0);
    hands.letGo();
    const folder = mkdtempSync(join(tmpdir(), "sluice-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, "in.json"), '{"items":[1,2]}');
    const typed = await cli("start fan-out --json --input", undefined, ['{"items":[]}']);
    expect(parsed(typed)).toEqual({ run: "2", existed: false });
    const first = await cli(`start fan-out --key k --input @${join(folder, "in.json")}`);
    expect(first).toEqual({ code: 0, out: "started run 3\n", err: "" });
    const again = await cli(`start fan-out --key k --input @${join(folder, "in.json")}`);
    expect(again.out).toBe("run 3 was there already\n");
    expect(await s.sluice.run("3").result({ timeoutMs: 30_000 })).toMatchObject({
      counts: { total: 2, succeeded: 2 },
    });
  });

  test("start --watch tells what changes, and fails as the run does", async () => {
    const { s, hands, cli } = await fanning(0);
    const ended = cli("start fan-out --watch --input", undefined, ['{"items":[1,2,3,4]}']);
    await hands.full(3);
    hands.active.get(2)!.fail();
    hands.letGo();
    const { code, out, err } = await ended;
    expect(code).toBe(1);
    expect(err).toBe('error workflow_failed: run 2 of fan-out failed: node "each", item 1: no 2\n');
    const lines = out.split("\n");
    expect(lines[0]).toBe("started run 2");
    expect(lines).toContain("run 2 of fan-out: failed, 100 %");
    expect(out).toMatch(/✗ each {2}work {2}█{20} 4\/4, 1 failed, failed, \d+/);
    expect(await s.sluice.runs({ state: "failed" })).toMatchObject({ runs: [{ id: "2" }] });
  });

  test("status shows every node, with a bar for an each", async () => {
    const { hands, run, cli } = await fanning(6);
    await hands.full(3);
    const { code, out } = await cli(`status ${run.id}`);
    expect([code, out.trimEnd().split("\n")]).toEqual([
      0,
      [
        "run 1 of fan-out: running, 0 %",
        "  ● each  work   ░░░░░░░░░░░░░░░░░░░░ 0/6, 3 of 3 at once",
        "  · last  after  pending",
      ],
    ]);
    const status = parsed(await cli(`status ${run.id} --json`));
    expect(status).toMatchObject({ id: "1", state: "running", nodes: [{ name: "each" }, {}] });
    // A line of JSON for every status, the last one of the end.
    const watched = await cli(`status ${run.id} --watch --json`, () => hands.letGo());
    const states = watched.out
      .trimEnd()
      .split("\n")
      .map((line) => (JSON.parse(line) as { state: string }).state);
    expect([watched.code, states[0], states.at(-1)]).toEqual([0, "running", "succeeded"]);
  });

  test("graph draws a name without states and a run with them", async () => {
    const { hands, run, cli } = await fanning(6);
    await hands.full(3);
    const plain = await cli("graph fan-out");
    expect(plain.out).toMatch(/^flowchart LR\n/);
    expect(plain.out).not.toContain("classDef running");
    expect((await cli(`graph ${run.id}`)).out).toMatch(/0\/6[^]*classDef running/);
    const folder = mkdtempSync(join(tmpdir(), "sluice-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, "run.svg");
    expect((await cli(`graph ${run.id} --format svg --out ${file}`)).out).toBe(`wrote ${file}\n`);
    expect(readFileSync(file, "utf8")).toMatch(/^<svg [^]*0\/6[^]*<\/svg>\n$/);
    expect(parsed(await cli(`graph ${run.id} --json`))).toMatchObject({
      graph: { name: "fan-out" },
      status: { each: { state: "running", counts: { total: 6 } }, last: { state: "pending" } },
    });
  });

  test("pause, resume, window, cancel and retry steer a run", async () => {
    const { hands, run, cli } = await fanning(6);
    await hands.full(3);
    expect((await cli(`pause ${run.id}`)).out).toBe("run 1: paused\n");
    expect((await run.status())!.state).toBe("paused");
    expect(parsed(await cli(`resume ${run.id} --json`))).toEqual({ run: "1", paused: false });
    expect((await cli(`window ${run.id} each 5`)).out).toBe("run 1: each runs 5 at once\n");
    await hands.full(5);
    const cancelled = await cli(`cancel ${run.id} --json --reason`, undefined, ["wrong region"]);
    expect(parsed(cancelled)).toEqual({ run: "1", answer: "asked" });
    await run.result({ timeoutMs: 30_000 }).catch(() => undefined);
    expect((await cli(`status ${run.id}`)).out).toContain("cancelled: wrong region");
    expect((await cli(`cancel ${run.id}`)).out).toBe("run 1: it was over already\n");
    hands.letGo();
    expect(parsed(await cli(`retry ${run.id} --json`))).toMatchObject({ run: "1" });
    expect(await run.result({ timeoutMs: 30_000 })).toMatchObject({ counts: { succeeded: 6 } });
    expect((await cli(`retry ${run.id}`)).out).toBe("run 1: nothing has failed\n");
    const late = await cli(`pause ${run.id}`);
    expect(late).toEqual({
      code: 1,
      out: "",
      err: "error workflow_over: run 1 of fan-out has succeeded\n",
    });
  });

  test("send reaches the node that waits", async () => {
    const s = await workflowScene();
    const nothing = task("nothing");
    await s.worker({ handlers: [nothing.handle(async () => undefined)], pollIntervalMs: 20 });
    const run = await s.sluice.start(waits);
    const sent = await on(s)(`send ${run.id} said --json --payload`, undefined, ['{"by":"me"}']);
    expect(parsed(sent)).toEqual({ run: run.id, event: "said" });
    expect(await run.result({ timeoutMs: 30_000 })).toEqual({ said: { by: "me" } });
  });

  test("list pages through runs, the newest first", async () => {
    const s = await workflowScene();
    for (let i = 0; i < 3; i++) await s.sluice.start(waits);
    await s.sluice.run("2").cancel("no");
    const cli = on(s);
    expect((await cli("list --state cancelled")).out).toMatch(
      /^ {5}2 {2}waits {2}cancelled {3}20\S+Z {2}no\n$/,
    );
    const page = parsed(await cli("list --workflow waits --limit 2 --json"));
    expect(page).toMatchObject({ runs: [{ id: "3" }, { id: "2" }], cursor: "2" });
    expect((await cli("list --cursor 2")).out).toMatch(/^ {5}1 {2}waits {2}running/);
    expect((await cli("list --workflow none")).out).toBe("no runs\n");
  });

  test("helps, with examples, for every verb", async () => {
    const { out, code } = await sluice(["workflow", "--help"]);
    expect(code).toBe(0);
    const verbs = [...out.matchAll(/^ {2}([a-z]+) \[options\]/gm)].map(([, verb]) => verb!);
    expect(verbs.join(" ")).toBe("start status graph list cancel retry pause resume window send");
    for (const verb of verbs) {
      const one = await sluice(["workflow", verb, "--help"]);
      expect(one).toMatchObject({ code: 0, err: "" });
      for (const word of ["--url", "--json", "Examples:", `$ sluice workflow ${verb}`, "The JSON:"])
        expect(one.out).toContain(word);
    }
  });
});

describe("what cannot be done", () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await freshDatabase({ migrated: true });
  });
  afterAll(() => database.drop());

  test.each([
    ["unknown_workflow", 1, "start none"],
    ["unknown_workflow", 1, "graph none"],
    ["run_not_found", 1, "status 42"],
    ["run_not_found", 1, "status 42 --watch"],
    ["run_not_found", 1, "cancel 42"],
    ["run_not_found", 1, "retry 42"],
    ["run_not_found", 1, "pause 42"],
    ["run_not_found", 1, "send 42 said"],
    ["invalid_option", 2, "start waits --input {"],
    ["invalid_option", 2, "send 1 said --payload @/no/such/file"],
    ["invalid_option", 2, "window 1 each x"],
    ["invalid_option", 2, "list --limit 0"],
    ["invalid_option", 2, "list --since yesterday"],
  ])("says %s and exits with %i: %s", async (code, exit, args) => {
    const said = await sluice(["workflow", ...args.split(" ")], { DATABASE_URL: database.url });
    expect(said).toMatchObject({ code: exit, out: "" });
    expect(said.err).toMatch(new RegExp(`^error ${code}: .+\n$`));
  });
});
