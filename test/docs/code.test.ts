import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { freshDatabase } from "../support/database.js";
import {
  docsPages,
  pageText,
  programsOf,
  writePrograms,
  type Program,
  type Written,
} from "../support/markdown.js";
import { spawnTs } from "../support/process.js";

const root = new URL("../../", import.meta.url);

// Declarations that code fragments on a page assume.
const sluice = 'import type { Sluice as S } from "sluice"; declare const sluice: S;';
const handlers = `${sluice} import type { TaskHandler } from "sluice"; declare const handlers: TaskHandler<never, never>[];`;
const assumed: Readonly<Record<string, string>> = {
  "docs/operate/explain.md": sluice,
  "docs/operate/metrics.md": handlers,
  "docs/operate/pressure.md": handlers,
  "docs/start/testing.md":
    'import { testSluice } from "sluice/testing"; import { after } from "node:test"; import type { Queryable } from "sluice";' +
    'import { closeMonth, sendInvoice, sendInvoiceBy, type Mailer } from "./invoices.js"; declare const mailer: Mailer; declare const db: Queryable;',
  "docs/start/transactions.md":
    "declare const mine: { run(text: string, params: unknown[]): Promise<Record<string, unknown>[]> };",
  "docs/start/workflows.md": `${sluice} import type { Queryable } from "sluice"; declare const db: Queryable; declare const id: string, total: number, parcels: string[];`,
};
// Modules that programs import but the page does not show.
const generated = `export interface Transaction {
  readonly account: { create(row: { data: { name: string } }): Promise<{ id: number }> };
  $queryRawUnsafe<T>(sql: string, ...params: unknown[]): Promise<T>;
}
export interface PrismaClient { $transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> }`;
const beside: readonly Program[] = [
  ...["invoices", "outbox"].map((name) => ({
    page: "docs/start/testing.md",
    name,
    code: pageText(`examples/testing/${name}.ts`).replace('"../../src/index.js"', '"sluice"'),
  })),
  // test/tx compiles and runs the block with a generated Prisma client.
  { page: "docs/start/transactions.md", name: "generated/client", code: generated },
];

// Programs that are compiled but not run here, with the reason.
const notRun: readonly (readonly [RegExp, string])[] = [
  [/^CONTRIBUTING\.md/, "has no program"],
  [/^docs\/start\/(?!events\.md)/, "tests of their own run these"],
  [/^docs\/operate\/(explain|metrics|pressure)\.md/, "fragments"],
  [/^docs\/recipes\/(errors-sentry|logging-pino)\.md/, "the package is not installed"],
  [/^docs\/recipes\/ordered-webhooks\.md/, "calls a server"],
  [/^docs\/migrate\//, "calls functions that only the reader has, or another queue's server"],
  [/^docs\/reference\/metrics\.md/, "listens on a fixed port"],
];
// Programs that keep serving: they run to their last line.
const serves = /^docs\/(recipes\/.+|operate\/pgbouncer|reference\/errors)\.md$/;
const LAST_LINE = "the last line";

const programs = ["README.md", "CONTRIBUTING.md", ...docsPages()].flatMap((page) =>
  programsOf({ page, text: pageText(page) }).map(({ name, code }) => {
    // On the first line, so that line numbers do not change.
    const before = name === "1" ? (assumed[page] ?? "") : "";
    const after = serves.test(page) ? `console.log("${LAST_LINE}");\n` : "";
    return { page, name, code: before + code + after };
  }),
);
const written = writePrograms([...programs, ...beside]);
afterAll(() => written.remove());

/** The errors of tsc in the programs of a folder, one line each: page, line and message. */
function errorsIn({ folder }: Written): string[] {
  const config = {
    extends: fileURLToPath(new URL("tsconfig.json", root)),
    compilerOptions: { noUnusedLocals: false, noUnusedParameters: false },
    include: [".", fileURLToPath(new URL("test/docs/absent.d.ts", root))],
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  const typescript = dirname(createRequire(import.meta.url).resolve("typescript/package.json"));
  const { stdout, status } = spawnSync(
    process.execPath,
    [join(typescript, "bin/tsc"), "--pretty", "false"],
    {
      cwd: folder,
      encoding: "utf8",
    },
  );
  const errors = stdout.split("\n").filter((line) => line.includes("error TS"));
  if (status !== 0 && errors.length === 0) throw new Error(`tsc ended with ${status}: ${stdout}`);
  return errors.map((line) => line.replace(/^(.+\.md)\/[^/]+\.ts\((\d+),\d+\): error /, "$1:$2: "));
}

test("every TypeScript block of the README and the documentation compiles", () => {
  expect(programs.length).toBeGreaterThan(30);
  expect(errorsIn(written)).toEqual([]);
});

test("the check of code blocks reports a wrong TypeScript block with page and line and ignores other languages", () => {
  const text = [
    "# Page",
    "```ts tasks",
    'import { task } from "sluice";',
    'export const mail = task("mail");',
    "```",
    "```ts",
    'import { mail } from "./tasks.js";',
    'mail.nothing("here");',
    "```",
    "```ts",
    "const n: number = true;",
    "```",
    "```js",
    "const n: number = true;",
    "```",
    "",
  ].join("\n");
  const wrong = writePrograms(programsOf({ page: "docs/page.md", text }));
  onTestFinished(() => wrong.remove());
  expect(errorsIn(wrong)).toEqual([
    expect.stringMatching(/^docs\/page\.md:8: TS2339: .*nothing/),
    expect.stringMatching(/^docs\/page\.md:11: TS2322: /),
  ]);
});

const run = programs.filter(({ page }) => !notRun.some(([pages]) => pages.test(page)));

// Workers should not warn about a machine that is busy with other tests.
const calm = { SLUICE_PRESSURE_EVENT_LOOP_DELAY_MS_MAX: "false" };

async function start(program: Program) {
  const database = await freshDatabase({ migrated: program.code.includes("migrate: false") });
  onTestFinished(() => database.drop());
  const spawned = spawnTs(written.pathOf(program), [], { DATABASE_URL: database.url, ...calm });
  let said = "";
  spawned.child.stderr!.on("data", (chunk: Buffer) => (said += chunk.toString()));
  return { ...spawned, said: () => said };
}

test.each(run.filter(({ page }) => !serves.test(page)))(
  "the program $name on $page runs and ends by itself",
  async (program) => {
    const { exit, said } = await start(program);
    expect([await exit, said()]).toEqual([0, ""]);
  },
);

test.each(run.filter(({ page }) => serves.test(page)))(
  "the program $name on $page runs to its last line",
  async (program) => {
    const started = await start(program);
    await started.line((text) => text === LAST_LINE);
    await started.kill("SIGKILL");
    expect(started.said()).toBe("");
  },
);
