import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { publint } from "publint";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { graphOf } from "./graph.js";
import { manifest, pack, type Packed } from "./pack.js";
import { scratch } from "./run.js";

const DEPENDENCIES_MAX = 5;
// About half a megabyte including workflows, metrics and the planner; peers need several.
const BYTES_MAX = 600_000;
// The documentation, compressed separately.
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

  test("contains only the code, its types, its migrations and the documentation", () => {
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

  test("stays within its size limits for code and documentation", () => {
    const { files, folder, bytes, unpackedBytes } = packed;
    console.log(`tarball: ${bytes} bytes, ${unpackedBytes} unpacked, ${files.length} files`);
    const pages = files.filter((path) => !isCode(path)).map((path) => readFileSync(join(folder, path)));
    const pagesBytes = gzipSync(Buffer.concat(pages)).length;
    expect(pagesBytes).toBeLessThan(PAGES_BYTES_MAX);
    expect(bytes - pagesBytes).toBeLessThan(BYTES_MAX);
  });

  test("contains the target of every relative link of its pages", () => {
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

  test("passes publint", async () => {
    const bytes = readFileSync(packed.tarball);
    const tarball = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
    const { messages } = await publint({ pack: { tarball }, strict: true });
    expect(messages).toEqual([]);
  });

  test(`has at most ${DEPENDENCIES_MAX} runtime dependencies`, () => {
    expect(Object.keys(manifest().dependencies).length).toBeLessThanOrEqual(DEPENDENCIES_MAX);
  });
});

describe.each(doors)("$name", ({ types, default: code }) => {
  test("loads only declared dependencies", () => {
    // The code probes for an optional peer and works without it: the quickstart runs without it.
    const { dependencies, peerDependencies } = manifest();
    const known = Object.keys({ ...dependencies, ...peerDependencies });
    const { packages } = graphOf(packed.folder, code);
    expect(packages.filter((name) => !name.startsWith("node:") && !known.includes(name))).toEqual([]);
  });

  test("has types that need no package other than their own", () => {
    const { packages } = graphOf(packed.folder, types);
    expect(packages.filter((name) => name !== "@standard-schema/spec")).toEqual([]);
  });
});

test("sluice/client loads no worker, keeper, server or command line", () => {
  const { files, packages } = graphOf(packed.folder, "dist/client.js");
  const notForProducers = /^dist\/(worker|keeper|embedded|cli|testing)\//;
  expect(files.filter((path) => notForProducers.test(path))).toEqual([]);
  expect(packages).not.toContain("commander");
  // The walk does find such files where they are loaded.
  const whole = graphOf(packed.folder, "dist/index.js").files;
  expect(whole.filter((path) => notForProducers.test(path)).length).toBeGreaterThan(20);
});

test("sluice loads the TOML parser only on demand", () => {
  const { files } = graphOf(packed.folder, "dist/index.js");
  const readers = files.filter((path) => readFileSync(join(packed.folder, path), "utf8").includes('"smol-toml"'));
  expect(readers).toEqual(["dist/config/file.js"]);
  const reader = readFileSync(join(packed.folder, "dist/config/file.js"), "utf8");
  expect(reader).toContain('await import("smol-toml")');
  expect(reader).not.toMatch(/from\s*"smol-toml"/);
});

test("sluice loads the embedded server only on demand", () => {
  const { files } = graphOf(packed.folder, "dist/index.js");
  expect(files).toContain("dist/embedded/index.js");
  const door = readFileSync(join(packed.folder, "dist/sluice.js"), "utf8");
  expect(door).toContain('await import("./embedded/index.js")');
});
