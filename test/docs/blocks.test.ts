import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync } from "node:fs";
import { rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";

// Pages whose TypeScript is compiled. A block of another library's code is fenced as js, or as
// `ts ignore`. `ts tasks.ts` names a block, so that others of its page can import it.
const FOLDERS = ["docs/migrate", "docs/recipes"];

interface Page {
  readonly path: string;
  readonly text: string;
}

interface Block {
  readonly page: string;
  readonly file: string;
  readonly code: string;
}

const repository = fileURLToPath(new URL("../..", import.meta.url));
const require = createRequire(import.meta.url);
const FENCE = /^```ts([^\n]*)\n([\s\S]*?)^```/gm;

const pages: Page[] = FOLDERS.flatMap((folder) =>
  readdirSync(join(repository, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => join(folder, name))
    .map((path) => ({ path, text: readFileSync(join(repository, path), "utf8") })),
);

function blocksOf({ path, text }: Page): Block[] {
  return [...text.matchAll(FENCE)].flatMap((match, i) => {
    const [, info = "", code = ""] = match;
    const words = info.trim().split(/\s+/);
    if (words.includes("ignore")) return [];
    const file = words.find((word) => word.endsWith(".ts")) ?? `block-${i}.ts`;
    // On the same lines as in the page, so that an error names the page's line.
    const above = text.slice(0, match.index).split("\n").length;
    return [{ page: path, file, code: "\n".repeat(above) + code }];
  });
}

/** Where the doors of the package are in the sources: "sluice/tx" is src/tx/index.ts. */
function doors(): Record<string, string[]> {
  const { name, exports } = require("../../package.json") as {
    name: string;
    exports: Record<string, { default: string } | string>;
  };
  return Object.fromEntries(
    Object.entries(exports).flatMap(([door, target]) => {
      if (typeof target === "string") return [];
      const source = target.default.replace("./dist/", "src/").replace(/\.js$/, ".ts");
      return [[join(name, door), [join(repository, source)]]];
    }),
  );
}

/** What tsc says about the blocks of these pages, one line each: page, line and message. */
function errorsIn(given: readonly Page[]): string[] {
  const cache = join(repository, "node_modules/.sluice");
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, "blocks-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const files = given.flatMap(blocksOf).map(({ page, file, code }) => {
    const path = join(folder, page, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, code);
    return path;
  });
  const absent = join(repository, "test/docs/absent.d.ts");
  const config = {
    extends: join(repository, "tsconfig.json"),
    compilerOptions: { paths: doors(), noUnusedLocals: false, noUnusedParameters: false },
    files: [absent, ...files],
    include: [],
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }\n');
  const tsc = join(dirname(require.resolve("typescript/package.json")), "bin/tsc");
  const { stdout, status } = spawnSync(process.execPath, [tsc, "--pretty", "false"], {
    cwd: folder,
    encoding: "utf8",
  });
  const errors = stdout.split("\n").filter((line) => line.includes("error TS"));
  if (status !== 0 && errors.length === 0) throw new Error(`tsc ended with ${status}: ${stdout}`);
  return errors.map((line) => line.replace(/^(.+\.md)\/[^/]+\.ts\((\d+),\d+\): error /, "$1:$2: "));
}

test.each(FOLDERS)("%s has pages with TypeScript", (folder) => {
  const blocks = pages.filter(({ path }) => path.startsWith(`${folder}/`)).flatMap(blocksOf);
  expect(blocks.length).toBeGreaterThan(0);
});

test("every block of TypeScript on these pages compiles against the sources", () => {
  expect(errorsIn(pages)).toEqual([]);
});

test("a wrong block is found, with its page and line, and an ignored one is not", () => {
  const text = [
    "# Page",
    "```ts tasks.ts",
    'import { task } from "sluice";',
    'export const mail = task("mail");',
    "```",
    "```ts",
    'import { mail } from "./tasks.js";',
    'mail.nothing("here");',
    "```",
    "```ts ignore",
    "const n: number = true;",
    "```",
    "",
  ].join("\n");
  expect(errorsIn([{ path: "docs/page.md", text }])).toEqual([
    expect.stringMatching(/^docs\/page\.md:8: TS2339: .*nothing/),
  ]);
});

test("every relative link on these pages leads to a file", () => {
  const broken = pages.flatMap(({ path, text }) =>
    [...text.matchAll(/\]\((?!https?:|#)([^)#\s]+)[^)]*\)/g)]
      .map(([, target]) => resolve(repository, dirname(path), target!))
      .filter((target) => !existsSync(target))
      .map((target) => `${path}: ${relative(repository, target)}`),
  );
  expect(broken).toEqual([]);
});
