import { expect, onTestFinished, test } from "vitest";
import { freshDatabase } from "../support/database.js";
import { spawnTs, type SpawnedTs } from "../support/process.js";
import type { PrintedSpan } from "./program.js";

const PROGRAM = "test/trace/program.ts";

/** The first span of this name that a process prints, except those. */
async function span(process: SpawnedTs, name: string, ...but: readonly PrintedSpan[]): Promise<PrintedSpan> {
  const line = await process.line((text) => {
    const printed = JSON.parse(text) as PrintedSpan;
    return printed.name === name && but.every(({ spanId }) => spanId !== printed.spanId);
  });
  return JSON.parse(line) as PrintedSpan;
}

test("an execution in one process links to the enqueue in another, and spans of its handler are its children", async () => {
  const database = await freshDatabase({ migrated: true });
  onTestFinished(() => database.drop());
  const producer = spawnTs(PROGRAM, ["produce", database.url]);
  expect(await producer.exit).toBe(0);
  const request = await span(producer, "request");
  const single = await span(producer, "enqueue single");
  const bulk = await span(producer, "enqueue bulk");
  for (const enqueue of [single, bulk]) {
    expect(enqueue).toMatchObject({ kind: "PRODUCER", traceId: request.traceId });
    expect(enqueue.parent).toBe(request.spanId);
  }

  const worker = spawnTs(PROGRAM, ["work", database.url]);
  onTestFinished(() => void worker.kill("SIGKILL"));
  const first = await span(worker, "run single");
  const second = await span(worker, "run bulk");
  const third = await span(worker, "run bulk", second);
  for (const [run, enqueue] of [
    [first, single],
    [second, bulk],
    [third, bulk],
  ] as const) {
    expect(run).toMatchObject({ kind: "CONSUMER", parent: null });
    expect(run.links).toEqual([{ traceId: enqueue.traceId, spanId: enqueue.spanId }]);
  }
  expect(new Set([request, first, second, third].map(({ traceId }) => traceId)).size).toBe(4);
  const inside = await span(worker, "inside a");
  expect(inside).toMatchObject({ traceId: first.traceId, parent: first.spanId });
  expect(await worker.kill("SIGTERM")).toBe(0);
});
