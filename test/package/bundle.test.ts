import { readdirSync } from "node:fs";
import { join } from "node:path";
import { build } from "vite";
import { afterAll, expect, test } from "vitest";
import { SCHEMA_VERSION } from "../../src/postgres/version.js";
import { freshDatabase } from "../support/database.js";
import { repository } from "./pack.js";
import { run, scratch } from "./run.js";

const place = scratch();
afterAll(() => place.remove());

test("the schema's version in the code is the number of the last migration", () => {
  const last = readdirSync(join(repository, "src/postgres/migrations")).toSorted().at(-1)!;
  expect(SCHEMA_VERSION).toBe(Number(last.slice(0, 4)));
});

test("a producer in a bundle enqueues, and is told that migrations run elsewhere", async () => {
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
  expect(readdirSync(place.path)).toEqual(["bundled.mjs"]);
  const database = await freshDatabase({ migrated: true });
  const ended = await run(process.execPath, [join(place.path, "bundled.mjs")], {
    cwd: place.path,
    env: { DATABASE_URL: database.url },
  });
  expect(ended).toEqual({
    code: 0,
    out: expect.stringMatching(/^.*npx sluice migrate.*migrate: false\nready\n$/) as string,
    err: "",
  });
  await database.drop();
});
