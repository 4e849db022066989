import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { tryLock } from "../../src/embedded/lock.js";
import { spawnTs } from "../support/process.js";

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "sluice-lock-"));
});

afterEach(() => rmSync(directory, { recursive: true, force: true }));

const locks = (): string[] => readdirSync(directory).filter((name) => /^(lock|mark)\./.test(name));

test("a directory lock has one holder at a time, even within a process", () => {
  const release = tryLock(directory);
  expect(release).toBeTypeOf("function");
  expect(tryLock(directory)).toBeUndefined();
  release?.();
  expect(tryLock(directory)).toBeTypeOf("function");
});

test("a directory lock leaves one small file, however often it is taken", () => {
  for (let round = 0; round < 20; round += 1) tryLock(directory)?.();
  expect(locks()).toEqual(["lock.20"]);
});

test("a directory lock is refused while its holder lives and taken over once the holder is killed", async () => {
  const holder = spawnTs("test/embedded/locker.ts", [directory, "0", "hold"]);
  await holder.line((line) => line === "holding");
  expect(tryLock(directory)).toBeUndefined();
  await holder.kill("SIGKILL");
  expect(tryLock(directory)).toBeTypeOf("function");
});

test("a directory lock excludes concurrent processes, even if some are killed while they hold it", async () => {
  const honest = Array.from({ length: 3 }, () => spawnTs("test/embedded/locker.ts", [directory, "60", "end"]));
  for (let victims = 0; victims < 2; victims += 1) {
    const victim = spawnTs("test/embedded/locker.ts", [directory, "5", "hold"]);
    await victim.line((line) => line === "holding");
    await victim.kill("SIGKILL");
  }
  const ends = honest.map((locker) => locker.line((line) => line === "done" || line === "clash"));
  expect(await Promise.all(ends)).toEqual(["done", "done", "done"]);
});
