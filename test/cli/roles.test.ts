import { expect, onTestFinished, test } from "vitest";
import { task, type } from "../../src/index.js";
import { openRealm } from "../roles/realm.js";
import { sluice } from "./run.js";

test("a reader lists and shows but changes nothing, and a producer shows a task without its input", async () => {
  const realm = await openRealm("jobs");
  onTestFinished(() => realm.close());
  const producer = await realm.connect("producer");
  const { id } = await producer.enqueue(task("mail", { queue: "post", input: type<string>() }), "dear reader");
  const as = (role: "reader" | "producer", ...args: string[]) =>
    sluice([...args, "--json", "--schema", "jobs"], { DATABASE_URL: realm.url(role) });
  const [queues, workers, limits, schedules, shown, blind, pause, retry] = await Promise.all([
    as("reader", "queues", "list"),
    as("reader", "workers", "list"),
    as("reader", "limits"),
    as("reader", "schedules", "list"),
    as("reader", "tasks", "show", id),
    as("producer", "tasks", "show", id),
    as("reader", "queues", "pause", "post", "--yes"),
    as("reader", "tasks", "retry", id),
  ]);
  for (const said of [queues, workers, limits, schedules, shown, blind]) expect([said.code, said.err]).toEqual([0, ""]);
  expect(JSON.parse(queues.out)).toMatchObject({ queues: [{ name: "post", tasks: { ready: { count: 1 } } }] });
  expect(JSON.parse(shown.out)).toMatchObject({ id, state: "ready", input: "dear reader" });
  expect(JSON.parse(blind.out)).toMatchObject({ id, state: "ready", attempts: [] });
  expect(JSON.parse(blind.out)).not.toHaveProperty("input");
  for (const said of [pause, retry])
    expect([said.code, said.err]).toEqual([1, expect.stringContaining("not_permitted")]);
});
