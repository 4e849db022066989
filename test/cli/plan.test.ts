import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { spawnTs } from "../support/process.js";

const folder = mkdtempSync(join(tmpdir(), "sluice-plan-"));
afterAll(() => rmSync(folder, { recursive: true }));

function fileOf(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

interface Said {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

async function plan(args: readonly string[]): Promise<Said> {
  const quiet = { DATABASE_URL: undefined, NO_COLOR: "1" };
  const { child, exit } = spawnTs("src/cli/main.ts", ["plan", ...args], quiet);
  let [out, err] = ["", ""];
  child.stdout!.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr!.on("data", (chunk: Buffer) => (err += chunk.toString()));
  return { code: await exit, out, err };
}

const web = ["--rate", "200", "--duration", "80ms", "--io", "0.9", "--cores", "4"];

describe("sluice plan", () => {
  test("prints one JSON object with inputs, recommendation, arithmetic and simulation", async () => {
    const [one, again] = await Promise.all([plan([...web, "--json"]), plan([...web, "--json"])]);
    expect(one).toMatchObject({ code: 0, err: "" });
    expect(one).toEqual(again);
    expect(JSON.parse(one.out)).toMatchObject({
      inputs: { ratePerSecond: 200, ioShare: 0.9, cores: 4, duration: { meanMs: 80 }, seed: 1 },
      recommendation: { processes: 3, permits: 9, claimLoops: 1, connections: 17 },
      arithmetic: expect.arrayContaining([
        { name: "in flight", formula: "200/s x 80 ms", value: 16, unit: "tasks" },
      ]) as unknown,
      warnings: [],
      simulation: { seconds: 60, stable: true },
    });
  });

  test("reads durations from a file", async () => {
    const file = fileOf("good.jsonl", '10\n30\n{"durationMs":20}\n');
    const args = ["--rate", "60/min", "--duration-file", file, "--io-bound", "--json"];
    const { out } = await plan([...args, "--permits", "50", "--preset", "io", "--seconds", "5"]);
    expect(JSON.parse(out)).toMatchObject({
      inputs: { ratePerSecond: 1, duration: { kind: "samples", meanMs: 20, samples: 3 } },
      setting: { permits: 50, claimLoops: 5, connections: 35 },
      simulation: { seconds: 5 },
    });
  });

  test("accepts a share such as .9, and rates and durations in hours and minutes", async () => {
    const args = ["--rate", "5000/hour", "--duration", "12m", "--io", ".9", "--json"];
    const { out, err } = await plan([...args, "--seconds", "5"]);
    expect(err).toBe("");
    expect(JSON.parse(out)).toMatchObject({
      inputs: { ratePerSecond: 5000 / 3600, duration: { meanMs: 720_000 }, ioShare: 0.9 },
    });
  });

  test("uses the claim size of the preset unless --batch overrides it", async () => {
    const args = ["--rate", "9000", "--duration", "1ms", "--io-bound", "--preset", "throughput"];
    const inputs = async (more: readonly string[]): Promise<unknown> =>
      JSON.parse((await plan([...args, "--seconds", "1", "--json", ...more])).out) as unknown;
    expect(await inputs([])).toMatchObject({ inputs: { batch: 500 }, setting: { permits: 2_000 } });
    expect(await inputs(["--batch", "20"])).toMatchObject({ inputs: { batch: 20 } });
  });

  test("lists --batch among the settings even if it equals the default claim size", async () => {
    const [given, not] = await Promise.all([
      plan([...web, "--seconds", "1", "--batch", "50"]),
      plan([...web, "--seconds", "1"]),
    ]);
    expect(given.out).toContain("CLAIM_BATCH_SIZE=50");
    expect(not.out).not.toContain("CLAIM_BATCH_SIZE");
  });

  test("explains the purpose of a preset in its help and in a plan with that preset", async () => {
    const purpose = "10 tasks at once, whatever the backlog: heavy tasks, not many short ones";
    const [help, high] = await Promise.all([plan(["--help"]), plan([...web, "--preset", "high", "--seconds", "1"])]);
    expect(help.out).toContain(`  high        ${purpose}`);
    expect(high.out).toContain(`  preset       high: ${purpose}`);
  });

  const usual = ["--rate", "1", "--io-bound"];
  test.each<[string, string[]]>([
    [
      "--rate must be a number of tasks per second, minute or hour",
      ["--rate", "fast", "--duration", "1s", "--io-bound"],
    ],
    ["--duration must be a duration with a unit (us, ms, s, min or m, h)", [...usual, "--duration", "80"]],
    ["either --duration or --duration-file", usual],
    ["either --duration or --duration-file", [...usual, "--duration", "1s", "--duration-file", "x"]],
    ["one of --io, --io-bound and --cpu-bound", ["--rate", "1", "--duration", "1s"]],
    ["one of --io, --io-bound and --cpu-bound", [...usual, "--duration", "1s", "--cpu-bound"]],
    ['--permits must be an integer from 1 to 100000, not "many"', [...usual, "--duration", "1s", "--permits", "many"]],
    ["--max-connections must be an integer from 1", [...usual, "--duration", "1s", "--max-connections", "0"]],
    ["--preset must be", [...usual, "--duration", "1s", "--preset", "huge"]],
    ["--spread needs --duration", [...usual, "--duration-file", "x", "--spread", "exponential"]],
    ["cannot be read: ENOENT", [...usual, "--duration-file", join(folder, "none.txt")]],
    ["bad.txt, line 2, must be a duration in ms", [...usual, "--duration-file", fileOf("bad.txt", "1\nsoon\n")]],
  ])("reports %j and exits with 2", async (words, args) => {
    const said = await plan(args);
    expect(said).toMatchObject({ code: 2, out: "" });
    expect(said.err).toMatch(/^error invalid_option: .+\n$/);
    expect(said.err).toContain(words);
  });

  test("prints its help, and requires a rate", async () => {
    const [help, none] = await Promise.all([plan(["--help"]), plan([])]);
    expect(help).toMatchObject({ code: 0, err: "" });
    for (const word of ["--rate", "--duration-file", "--json", "Examples:"]) expect(help.out).toContain(word);
    expect(none).toMatchObject({ code: 2, out: "" });
    expect(none.err).toContain("--rate");
  });
});

describe("docs/operate/plan.md", () => {
  const page = readFileSync(new URL("../../docs/operate/plan.md", import.meta.url), "utf8");
  const shown = [...page.matchAll(/```console\n\$ sluice plan (.*)\n([^`]*)```/g)];
  const [, samples] = /samples\.txt[^]*?```text\n([^`]*)```/.exec(page) ?? [];

  test("shows at least three commands", () => expect(shown.length).toBeGreaterThanOrEqual(3));

  test.each(shown.map(([, args, output]) => [args!, output!]))(
    "shows the exact output of `sluice plan %s`",
    async (args, output) => {
      const file = fileOf("samples.txt", samples!);
      const words = args.split(" ").map((word) => (word === "samples.txt" ? file : word));
      expect(await plan(words)).toEqual({ code: 0, out: output, err: "" });
    },
  );
});
