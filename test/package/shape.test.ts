import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { publint } from "publint";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { graphOf } from "./graph.js";
import { manifest, pack, type Packed } from "./pack.js";
import { scratch } from "./run.js";

const DEPENDENCIES_MAX = 5;
// Half a megabyte with workflows, metrics and the plan in it; peers have several.
const BYTES_MAX = 600_000;
// The documentation, compressed by itself.
const PAGES_BYTES_MAX = 220_000;

const place = scratch();
let packed: Packed;
beforeAll(async () => {
  packed = await pack(place.path);
});
afterAll(() => place.remove());

const doors = Object.entries(manifest().exports).flatMap(([name, door]) =>
  typeof door === "string" ? [] : [{ name, ...door }],
);

describe("the tarball", () => {
  const isCode = (path: string): boolean => path.startsWith("dist/");

  test("holds what runs, its types, its migrations and the documentation, and nothing else", () => {
    const { files } = packed;
    expect(files.filter((path) => isCode(path) && !/\.(js|d\.ts|sql)$/.test(path))).toEqual([]);
    const pages = files.filter((path) => !isCode(path));
    expect(pages.filter((path) => !/^(docs|examples|bench|fault)\//.test(path)).toSorted()).toEqual([
      "ARCHITECTURE.md",
      "CHANGELOG.md",
      "CONTRIBUTING.md",
      "LICENSE",
      "README.md",
      "package.json",
    ]);
    expect(pages.filter((path) => /^(bench|fault)\//.test(path))).toEqual(["bench/README.md", "fault/README.md"]);
    expect(pages.filter((path) => /\.(jsonl|txt)$|\.test\./.test(path))).toEqual([]);
    for (const path of [
      "dist/postgres/migrations/0001_tables.sql",
      "dist/postgres/functions/claim/step.sql",
      "docs/README.md",
      "docs/operate/roles.sql",
      "docs/operate/alerts.yml",
      "examples/quickstart.ts",
    ])
      expect(files).toContain(path);
  });

  test("is small: the code, and the documentation", () => {
    const { files, folder, bytes, unpackedBytes } = packed;
    console.log(`tarball: ${bytes} bytes, ${unpackedBytes} unpacked, ${files.length} files`);
    const pages = files.filter((path) => !isCode(path)).map((path) => readFileSync(join(folder, path)));
    const pagesBytes = gzipSync(Buffer.concat(pages)).length;
    expect(pagesBytes).toBeLessThan(PAGES_BYTES_MAX);
    expect(bytes - pagesBytes).toBeLessThan(BYTES_MAX);
  });

  test("every relative link of its pages leads to a packed file or folder", () => {
    const { files, folder } = packed;
    const isPacked = (path: string): boolean => files.some((file) => file === path || file.startsWith(`${path}/`));
    const dead = files
      .filter((path) => path.endsWith(".md"))
      .flatMap((page) => {
        const text = readFileSync(join(folder, page), "utf8").replaceAll(/```[\s\S]*?```/g, "");
        return [...text.matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)]
          .map(([, link]) => join(dirname(page), link!))
          .filter((target) => !isPacked(target))
          .map((target) => `${page}: ${target}`);
      });
    expect(dead).toEqual([]);
  });

  test("has nothing that publint could say against it", async () => {
    const bytes = readFileSync(packed.tarball);
    const tarball = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
    const { messages } = await publint({ pack: { tarball }, strict: true });
    expect(messages).toEqual([]);
  });

  test(`needs at most ${DEPENDENCIES_MAX} packages`, () => {
    expect(Object.keys(manifest().dependencies).length).toBeLessThanOrEqual(DEPENDENCIES_MAX);
  });
});

describe.each(doors)("$name", ({ types, default: code }) => {
  test("loads nothing that is not a dependency", () => {
    // An optional peer is looked for, and nothing is amiss without it: the quickstart runs without.
    const { dependencies, peerDependencies } = manifest();
    const known = Object.keys({ ...dependencies, ...peerDependencies });
    const { packages } = graphOf(packed.folder, code);
    expect(packages.filter((name) => !name.startsWith("node:") && !known.includes(name))).toEqual([]);
  });

  test("has types that need no package but the one they come with", () => {
    const { packages } = graphOf(packed.folder, types);
    expect(packages.filter((name) => name !== "@standard-schema/spec")).toEqual([]);
  });
});

test("a producer loads no worker, keeper, server or command line", () => {
  const { files, packages } = graphOf(packed.folder, "dist/client.js");
  const notForProducers = /^dist\/(worker|keeper|embedded|cli|testing)\//;
  expect(files.filter((path) => notForProducers.test(path))).toEqual([]);
  expect(packages).not.toContain("commander");
  // The walk does see what it looks for.
  const whole = graphOf(packed.folder, "dist/index.js").files;
  expect(whole.filter((path) => notForProducers.test(path)).length).toBeGreaterThan(20);
});

test("what reads sluice.toml is loaded only where there is one", () => {
  const { files } = graphOf(packed.folder, "dist/index.js");
  const readers = files.filter((path) => readFileSync(join(packed.folder, path), "utf8").includes('"smol-toml"'));
  expect(readers).toEqual(["dist/config/file.js"]);
  const reader = readFileSync(join(packed.folder, "dist/config/file.js"), "utf8");
  expect(reader).toContain('await import("smol-toml")');
  expect(reader).not.toMatch(/from\s*"smol-toml"/);
});

test("the whole loads the server only when it is asked for", () => {
  const { files } = graphOf(packed.folder, "dist/index.js");
  expect(files).toContain("dist/embedded/index.js");
  const door = readFileSync(join(packed.folder, "dist/sluice.js"), "utf8");
  expect(door).toContain('await import("./embedded/index.js")');
});
