import { readdirSync } from "node:fs";
import { join } from "node:path";
import { build as esbuild } from "esbuild";
import { build } from "vite";
import { afterAll, expect, test } from "vitest";
import { freshDatabase } from "../support/database.js";
import { repository } from "./pack.js";
import { run, scratch } from "./run.js";

const place = scratch();
afterAll(() => place.remove());

const toldAndReady = {
  code: 0,
  out: expect.stringMatching(/^.*npx sluice migrate.*migrate: false\nready\n$/) as string,
  err: "",
};

test("a producer in a CommonJS bundle enqueues and reports that migrations run elsewhere", async () => {
  const outfile = join(place.path, "bundled.cjs");
  await esbuild({
    entryPoints: [join(repository, "test/package/programs/bundled.cjs")],
    outfile,
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node20",
    // esbuild warns that import.meta is empty there.
    logLevel: "error",
    external: ["pg-native"],
    alias: { "sluice/client": join(repository, "src/client.ts") },
  });
  const database = await freshDatabase({ migrated: true });
  const env = { DATABASE_URL: database.url };
  expect(await run(process.execPath, [outfile], { cwd: place.path, env })).toEqual(toldAndReady);
  await database.drop();
});

test("a producer in an ES module bundle enqueues and reports that migrations run elsewhere", async () => {
  await build({
    root: join(repository, "test/package/programs"),
    configFile: false,
    logLevel: "error",
    resolve: { alias: { "sluice/client": join(repository, "src/client.ts") } },
    ssr: { noExternal: true },
    build: {
      ssr: "bundled.mjs",
      outDir: place.path,
      emptyOutDir: false,
      target: "node20",
      rolldownOptions: { output: { entryFileNames: "[name].mjs" } },
    },
  });
  // Only code. Modules that are loaded on demand, such as the TOML parser, are separate chunks.
  const files = readdirSync(place.path, { recursive: true, encoding: "utf8" });
  expect(files).toContain("bundled.mjs");
  expect(files.filter((name) => !/\.[cm]?js$/.test(name))).toEqual(["assets"]);
  const database = await freshDatabase({ migrated: true });
  const ended = await run(process.execPath, [join(place.path, "bundled.mjs")], {
    cwd: place.path,
    env: { DATABASE_URL: database.url },
  });
  expect(ended).toEqual(toldAndReady);
  await database.drop();
});
