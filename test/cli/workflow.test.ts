import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { workflowCommand } from "../../src/cli/workflow/workflow.js";
import { task, workflow } from "../../src/index.js";
import { fanOut, Hands, listener, numbers, workflowScene } from "../runs/scene.js";
import { until, type Scene } from "../flow/scene.js";
import { freshDatabase, type TestDatabase } from "../support/database.js";
import { sluice, type Said } from "./run.js";

const waits = workflow("waits", {}, (w) => {
  const said = w.waitFor("said", "said");
  return { said };
});

/** Runs the command on the database of this scene. */
const on =
  (s: Scene) =>
  (args: string, heard?: (out: string) => void, more: readonly string[] = []): Promise<Said> =>
    sluice(["workflow", ...args.split(" "), ...more], { DATABASE_URL: s.url }, heard);

/** The --help output of a subcommand. */
function helpOf(verb: string): string {
  const main = new Command("sluice").addCommand(workflowCommand());
  const command = main.commands[0]!.commands.find((one) => one.name() === verb)!;
  let help = "";
  command.configureOutput({ writeOut: (text) => (help += text), getOutHelpWidth: () => 80 }).outputHelp();
  return help;
}

const parsed = ({ out }: Said): unknown => JSON.parse(out);

async function fanning(items: number, onError: "finish" | "collect" = "finish") {
  const s = await workflowScene();
  const hands = new Hands();
  const last = listener();
  await s.worker({ handlers: [hands.handler, last.handler], pollIntervalMs: 20, leaseMs: 15_000 });
  const run = await s.sluice.start(fanOut(3, onError), { items: numbers(items) });
  return { s, hands, run, cli: on(s) };
}

describe("sluice workflow", () => {
  test("start runs the newest graph of a name with an input from text or a file, once per key", async () => {
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
    expect(again.out).toBe("run 3 already exists\n");
    expect(await s.sluice.run("3").result({ timeoutMs: 30_000 })).toMatchObject({
      counts: { total: 2, succeeded: 2 },
    });
  });

  test("start --watch prints changes and fails if the run fails", async () => {
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
    expect(out).toMatch(/✗ each {2}work {2}█{20} 4\/4, 1 failed, failed, [\d.]+ m?s: 1 of 4 items failed: no 2\n/);
    expect(await s.sluice.runs({ state: "failed" })).toMatchObject({ runs: [{ id: "2" }] });
  });

  test("status shows every node, with a progress bar for an each", async () => {
    const { hands, run, cli } = await fanning(6);
    await hands.full(3);
    const { code, out } = await cli(`status ${run.id}`);
    expect([code, out.trimEnd().split("\n")]).toEqual([
      0,
      [
        "run 1 of fan-out: running, 0 %",
        "  ● each  work   ░░░░░░░░░░░░░░░░░░░░ 0/6, 3 of 3 started, 3 waiting",
        "  · last  after  pending",
      ],
    ]);
    const status = parsed(await cli(`status ${run.id} --json`));
    expect(status).toMatchObject({ id: "1", state: "running", nodes: [{ name: "each" }, {}] });
    // One line of JSON per status; the last one is final.
    const watched = await cli(`status ${run.id} --watch --json`, () => hands.letGo());
    const states = watched.out
      .trimEnd()
      .split("\n")
      .map((line) => (JSON.parse(line) as { state: string }).state);
    expect([watched.code, states[0], states.at(-1)]).toEqual([0, "running", "succeeded"]);
  });

  test("status shows why a node failed, what it waits for, and that no worker serves it", async () => {
    const s = await workflowScene();
    const nothing = task("nothing", { retry: { attempts: 1 } });
    const many = workflow("many", {}, (w) => {
      const lone = w.task("lone", nothing, undefined);
      w.onFailure(lone, (f) => void f.waitFor("said", "said", { timeoutMs: 60_000 }));
    });
    const run = await s.sluice.start(many);
    const cli = on(s);
    expect((await cli(`status ${run.id}`)).out).toContain("● lone  nothing  running, no worker serves it\n");
    const handler = nothing.handle(async () => {
      throw new Error("no\nluck");
    });
    await s.worker({ handlers: [handler], pollIntervalMs: 20 });
    await until("it to fail", async () => (await run.status())!.nodes[0]!.state === "failed");
    const { out } = await cli(`status ${run.id}`);
    expect(out).toMatch(/✗ lone {2}nothing {2}failed, [\d.]+ m?s: no luck\n/);
    expect(out).toMatch(/● said {2}waitFor {2}waits for said until 20\S+Z\n/);
    expect(parsed(await cli(`status ${run.id} --json`))).toMatchObject({
      nodes: [
        { name: "lone", error: { name: "Error", message: "no\nluck", code: null } },
        { name: "said", event: "said", until: expect.stringMatching(/^20/) as string },
      ],
    });
    await run.cancel();
  });

  test("items lists the items page by page, failed ones with their errors", async () => {
    const { hands, run, cli } = await fanning(6, "collect");
    await hands.full(3);
    for (const i of [0, 2]) hands.active.get(i)!.fail();
    hands.letGo();
    await run.result({ timeoutMs: 30_000 });
    const first = await cli(`items ${run.id} each --limit 2`);
    expect(first.out).toMatch(
      /^ {5}0 {2}task \d+ {2}failed {5}no 0\n {5}1 {2}task \d+ {2}succeeded\nmore: --after 1\n$/,
    );
    const failed = await cli(`items ${run.id} each --state failed --after 0 --json`);
    expect(parsed(failed)).toMatchObject({
      items: [{ index: 2, state: "failed", error: { message: "no 2" } }],
      after: null,
    });
    expect((await cli(`items ${run.id} none`)).err).toMatch(/^error unknown_node: /);
    // The run has succeeded, so a retry has nothing to run again.
    expect((await cli(`retry ${run.id}`)).out).toBe(
      `run 1: no node has failed, so nothing runs again. 2 items of "each" did not succeed, which its onError allows: sluice workflow items 1 "each"\n`,
    );
  });

  test("declare stores a graph for start if its tasks are known", async () => {
    const s = await workflowScene();
    const cli = on(s);
    const folder = mkdtempSync(join(tmpdir(), "sluice-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, "graph.json");
    const node = { name: "said", kind: "waitFor", event: "said" };
    const nodes = [{ name: "one", kind: "task", type: "nothing", input: null }, node];
    writeFileSync(file, JSON.stringify({ version: 1, name: "data", nodes }));
    const unknown = await cli(`declare ${file}`);
    expect(unknown).toMatchObject({ code: 1, out: "" });
    expect(unknown.err).toMatch(/^error unknown_task: .*'nothing'/);
    await s.sluice.sync([task("nothing")]);
    expect((await cli("definitions")).out).toBe("no workflows are declared\n");
    expect((await cli(`declare ${file}`)).out).toBe("declared data, 2 nodes\n");
    expect((await s.sluice.workflowGraph("data"))!.nodes.map(({ name }) => name)).toEqual(["one", "said"]);
    expect((await (await s.sluice.start("data")).status())!.state).toBe("running");
    expect(parsed(await cli(`declare ${file} --json`))).toEqual({ workflow: "data", nodes: 2 });
    expect((await cli("definitions")).out).toMatch(/^data  2 nodes    1 live  since 20\S+Z\n$/);
    expect(parsed(await cli("definitions --json"))).toMatchObject([{ name: "data", live: 1 }]);
    writeFileSync(file, JSON.stringify({ version: 1, name: "data", nodes: [] }));
    expect((await cli(`declare ${file}`)).err).toMatch(/^error invalid_workflow: /);
  });

  test("graph draws a workflow without states and a run with states", async () => {
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

  test("pause, resume, window, cancel and retry change a run", async () => {
    const { hands, run, cli } = await fanning(6);
    await hands.full(3);
    expect((await cli(`pause ${run.id}`)).out).toBe("run 1: paused\n");
    expect((await run.status())!.state).toBe("paused");
    expect(parsed(await cli(`resume ${run.id} --json`))).toEqual({ run: "1", paused: false });
    expect((await cli(`window ${run.id} each 5`)).out).toBe("run 1: the window of each is now 5\n");
    await hands.full(5);
    const cancelled = await cli(`cancel ${run.id} --json --reason`, undefined, ["wrong region"]);
    expect(parsed(cancelled)).toEqual({ run: "1", answer: "asked" });
    await run.result({ timeoutMs: 30_000 }).catch(() => undefined);
    expect((await cli(`status ${run.id}`)).out).toContain("cancelled: wrong region");
    expect((await cli(`cancel ${run.id}`)).out).toBe("run 1: it had already ended\n");
    hands.letGo();
    expect(parsed(await cli(`retry ${run.id} --json`))).toMatchObject({ run: "1" });
    expect(await run.result({ timeoutMs: 30_000 })).toMatchObject({ counts: { succeeded: 6 } });
    expect((await cli(`retry ${run.id}`)).out).toBe("run 1: no node failed\n");
    const late = await cli(`pause ${run.id}`);
    expect(late).toEqual({
      code: 1,
      out: "",
      err: "error workflow_over: run 1 of fan-out has ended: succeeded\n",
    });
  });

  test("send delivers an event to the waiting node", async () => {
    const s = await workflowScene();
    const nothing = task("nothing");
    await s.worker({ handlers: [nothing.handle(async () => undefined)], pollIntervalMs: 20 });
    const run = await s.sluice.start(waits);
    const sent = await on(s)(`send ${run.id} said --json --payload`, undefined, ['{"by":"me"}']);
    expect(parsed(sent)).toEqual({ run: run.id, event: "said" });
    expect(await run.result({ timeoutMs: 30_000 })).toEqual({ said: { by: "me" } });
  });

  test("list pages through runs, newest first", async () => {
    const s = await workflowScene();
    for (let i = 0; i < 3; i++) await s.sluice.start(waits);
    await s.sluice.run("2").cancel("no");
    const cli = on(s);
    expect((await cli("list --state cancelled")).out).toMatch(/^ {5}2 {2}waits {2}cancelled {3}20\S+Z {2}no\n$/);
    const page = parsed(await cli("list --workflow waits --limit 2 --json"));
    expect(page).toMatchObject({ runs: [{ id: "3" }, { id: "2" }], cursor: "2" });
    expect((await cli("list --cursor 2")).out).toMatch(/^ {5}1 {2}waits {2}running/);
    expect((await cli("list --workflow none")).out).toBe("no runs\n");
    expect((await cli("list --since 1h --limit 1")).out).toMatch(/^ {5}\d {2}waits/);
    expect((await cli("list --since 0s")).out).toBe("no runs\n");
  });

  test("every subcommand prints its help with examples", async () => {
    const { out, code } = await sluice(["workflow", "--help"]);
    expect(code).toBe(0);
    const verbs = [...out.matchAll(/^ {2}([a-z]+) \[options\]/gm)].map(([, verb]) => verb!);
    expect(verbs.join(" ")).toBe(
      "start status items graph list definitions declare cancel retry pause resume window send",
    );
    const one = await sluice(["workflow", "items", "--help"]);
    expect(one).toEqual({ code: 0, out: helpOf("items"), err: "" });
    for (const verb of verbs)
      for (const word of ["--url", "--json", "Examples:", `$ sluice workflow ${verb}`, "The JSON:"])
        expect(helpOf(verb)).toContain(word);
  });
});

describe("a failing sluice workflow command", () => {
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
    ["run_not_found", 1, "items 42 each"],
    ["invalid_option", 2, "window 1 each x"],
    ["invalid_option", 2, "items 42 each --limit x"],
    ["invalid_option", 2, "declare /no/such/file"],
    ["invalid_option", 2, "list --task x"],
    ["invalid_option", 2, "list --limit 0"],
    ["invalid_option", 2, "list --since yesterday"],
  ])("reports %s and exits with %i: %s", async (code, exit, args) => {
    const said = await sluice(["workflow", ...args.split(" ")], { DATABASE_URL: database.url });
    expect(said).toMatchObject({ code: exit, out: "" });
    expect(said.err).toMatch(new RegExp(`^error ${code}: .+\n$`));
  });

  test("quotes the wrong input in its error", async () => {
    const said = await sluice(["workflow", "window", "1", "each", "abc"], {
      DATABASE_URL: database.url,
    });
    const message = 'the window must be a whole number, not "abc"';
    expect(said).toEqual({ code: 2, out: "", err: `error invalid_option: ${message}\n` });
  });
});
