import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { task, type } from "../../src/index.js";
import { fromPrisma } from "../../src/tx/index.js";
import { codeOf, openHouse, type House } from "../client/house.js";
import { contract } from "./contract.js";
import { cutContract } from "./cut.js";
import { makeProject, openClient, openPrisma, type Client, type Project } from "./prisma.js";

let project: Project;
beforeAll(() => {
  project = makeProject();
});
afterAll(() => project.remove());

describe("an enqueue in a transaction of Prisma", () => contract((url) => openPrisma(project, url)));

const typescript = dirname(createRequire(import.meta.url).resolve("typescript/package.json"));
const repository = fileURLToPath(new URL("../..", import.meta.url));

/** The errors of tsc in a file of the project. Our own files are checked elsewhere. */
function checked(file: string): string {
  const config = { extends: join(repository, "tsconfig.json"), files: [file], include: [] };
  writeFileSync(join(project.folder, "tsconfig.json"), JSON.stringify(config));
  const tsc = join(typescript, "bin/tsc");
  const { stdout, status } = spawnSync(process.execPath, [tsc, "--pretty", "false"], {
    cwd: project.folder,
    encoding: "utf8",
  });
  expect(status).not.toBeNull();
  return stdout
    .split("\n")
    .filter((line) => line.startsWith(`${file}(`))
    .join("\n");
}

describe("when the connection is cut, a transaction of Prisma", () => cutContract((url) => openPrisma(project, url)));

describe("with the types that Prisma generates,", () => {
  test("the code of the transactions page compiles", () => {
    expect(checked("prisma.ts")).toBe("");
  });

  test("passing the client itself does not compile", () => {
    const code = `
      import type { PrismaClient } from "./generated/client.js";
      import { fromPrisma } from ${JSON.stringify(join(repository, "src/tx/index.js"))};
      export const wrong = (prisma: PrismaClient) => fromPrisma(prisma);`;
    writeFileSync(join(project.folder, "wrong.ts"), code);
    expect(checked("wrong.ts")).toContain("not assignable to parameter of type 'PrismaTransaction'");
  });
});

describe("a transaction of Prisma", () => {
  const note = task("note", { input: type<string>() });
  let house: House;
  let prisma: Client;

  beforeAll(async () => {
    house = await openHouse();
    prisma = await openClient(project, house.url);
  });
  afterAll(async () => {
    await prisma.$disconnect();
    await house.close();
  });

  test("cannot be replaced by the client, which is refused", async () => {
    expect(await codeOf(() => fromPrisma(prisma as never))).toBe("invalid_option");
  });

  test("that has ended is refused", async () => {
    const tx = await prisma.$transaction((tx) => Promise.resolve(fromPrisma(tx)));
    expect(await codeOf(() => house.sluice.enqueue(note, "late", { tx }))).toBe("invalid_option");
    expect(await house.tasks()).toBe(0);
  });

  test("nested in another rolls back only its own tasks", async () => {
    await prisma.$transaction(async (outer) => {
      await house.sluice.enqueue(note, "kept", { tx: fromPrisma(outer) });
      const inner = outer.$transaction(async (tx) => {
        await house.sluice.enqueue(note, "lost", { tx: fromPrisma(tx) });
        throw new Error("only the inner one");
      });
      await expect(inner).rejects.toThrow("only the inner one");
    });
    expect(await house.sql("select input from sluice.task")).toEqual([{ input: "kept" }]);
  });

  test("of an extended client works, and the extended client itself is refused", async () => {
    const extended = prisma.$extends({ name: "nothing" });
    const before = await house.tasks();
    await extended.$transaction((tx) => house.sluice.enqueue(note, "extended", { tx: fromPrisma(tx) }));
    expect(await house.tasks()).toBe(before + 1);
    expect(await codeOf(() => fromPrisma(extended as never))).toBe("invalid_option");
  });
});
