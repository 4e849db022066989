import { expect, test } from "vitest";
import { task, type } from "../../src/index.js";
import { ended, scene, signal, until, type Scene } from "../flow/scene.js";
import { sluice, type Said } from "./run.js";

const on =
  (s: Scene) =>
  (...args: string[]): Promise<Said> =>
    sluice(["tasks", ...args], { DATABASE_URL: s.url });
const parsed = ({ out }: Said): unknown => JSON.parse(out);
const mail = task("mail", { queue: "post", retry: { attempts: 1 } });
const letter = task("letter", {
  queue: "post",
  input: type<{ to: string; password: string }>(),
  retry: { attempts: 1 },
});

test("sluice tasks show prints the input, the attempts, the outcome and the words of explain", async () => {
  const s = await scene();
  const failing = letter.handle(() => {
    throw new Error("no such address\nat all");
  });
  await s.worker({ handlers: [failing], name: "w-1" });
  const handle = await s.sluice.enqueue(letter, { to: "ada", password: "s3cret" });
  await ended(s, 1);
  const waiting = await s.sluice.enqueue(task("unserved", { queue: "post" }), undefined, { priority: 5 });
  const cli = on(s);
  const [people, programs, other] = await Promise.all([
    cli("show", handle.id),
    cli("show", handle.id, "--json"),
    cli("show", waiting.id),
  ]);
  const lines = people.out.trimEnd().split("\n");
  expect([people.code, people.err, lines[0]]).toEqual([0, "", `task ${handle.id}: letter in queue post, failed`]);
  expect(lines).toContain("  attempts   1 of 1");
  expect(people.out).toMatch(/\n {2}input {6}\{"to":"ada","password":/);
  expect(people.out).toMatch(/\n {2}attempt 1 {2}failed at \S+ after \d+ ms on w-1: no such address at all\n/);
  expect(people.out).toMatch(/\n {2}outcome {4}\{.*no such address/);
  expect(people.out + programs.out).not.toContain("s3cret");
  expect(people.out).toMatch(/\n {2}explain {4}it failed at .*, after 1 of 1 attempt: no such address/);
  expect(parsed(programs)).toMatchObject({
    id: handle.id,
    state: "failed",
    attempt: 1,
    input: { to: "ada" },
    attempts: [{ attempt: 1, worker: "w-1", error: { message: "no such address\nat all" } }],
    outcome: { message: "no such address\nat all" },
    explanation: { task: handle.id, error: "no such address\nat all" },
  });
  expect(other.out).toContain("  priority  5\n");
  expect(other.out).toContain('explain   no live worker serves "unserved" in queue "post"');
});

test("sluice tasks cancel answers for each task, asks running ones to stop and needs --yes", async () => {
  const s = await scene();
  const [begun, release] = [signal(), signal()];
  const slow = task("slow", { retry: { attempts: 1 } });
  const handler = slow.handle(async () => {
    begun.resolve();
    await release.promise;
  });
  await s.worker({ handlers: [handler] });
  const [running, waiting] = [await s.sluice.enqueue(slow), await s.sluice.enqueue(mail)];
  await begun.promise;
  const cli = on(s);
  const unasked = await cli("cancel", waiting.id);
  expect([unasked.code, unasked.err]).toEqual([2, expect.stringContaining("pass --yes")]);
  expect((await waiting.status())?.state).not.toBe("cancelled");
  const ids = [running.id, waiting.id];
  const people = await cli("cancel", ...ids, "--yes", "--reason", "wrong price");
  expect(people).toEqual({
    code: 0,
    err: "",
    out: `task ${running.id}: it is running and was asked to stop\ntask ${waiting.id}: cancelled\n`,
  });
  expect(await waiting.status()).toMatchObject({ state: "cancelled", outcome: { reason: "wrong price" } });
  release.resolve();
  const again = await cli("cancel", waiting.id, waiting.id, "999", "--yes", "--json");
  expect(parsed(again)).toEqual({
    tasks: [
      { task: waiting.id, answer: "over" },
      { task: "999", answer: "unknown" },
    ],
  });
  expect(again.code).toBe(1);
  expect(JSON.parse(again.err)).toMatchObject({ error: { code: "task_not_found" } });
});

test("sluice tasks retry runs failed and cancelled tasks again and leaves others alone", async () => {
  const s = await scene();
  const [gone, waiting] = [await s.sluice.enqueue(mail), await s.sluice.enqueue(mail)];
  await gone.cancel();
  const cli = on(s);
  const people = await cli("retry", gone.id, waiting.id);
  expect(people).toEqual({
    code: 0,
    err: "",
    out: `task ${gone.id}: runs again\ntask ${waiting.id}: is ready, so nothing was changed\n`,
  });
  expect((await gone.status())?.state).toBe("ready");
  await gone.cancel();
  const programs = await cli("retry", gone.id, "999", "--json");
  expect(parsed(programs)).toEqual({
    tasks: [
      { task: gone.id, retried: true },
      { task: "999", retried: false, state: null },
    ],
  });
  expect([programs.code, programs.err]).toEqual([1, expect.stringContaining("there is no task 999")]);
});

test("sluice tasks unblock lets an order key continue without its failed task", async () => {
  const s = await scene();
  const ordered = task("ordered", {
    input: type<{ fails: boolean }>(),
    order: { key: () => "k", onFailure: "block" },
    retry: { attempts: 1 },
  });
  const handler = ordered.handle(({ fails }) => {
    if (fails) throw new Error("no");
  });
  await s.worker({ handlers: [handler], pollIntervalMs: 20 });
  const first = await s.sluice.enqueue(ordered, { fails: true });
  const second = await s.sluice.enqueue(ordered, { fails: false });
  await until("the first to fail", async () => (await first.status())?.state === "failed");
  const cli = on(s);
  expect(parsed(await cli("unblock", first.id, "--json"))).toEqual({ task: first.id, unblocked: true });
  await second.result({ timeoutMs: 10_000 });
  expect(await cli("unblock", first.id)).toEqual({
    code: 0,
    err: "",
    out: `task ${first.id}: it blocks no order key\n`,
  });
});

test("sluice tasks refuses texts that are no ids and names tasks that do not exist", async () => {
  const s = await scene();
  const cli = on(s);
  const verbs = ["show", "retry", "unblock"];
  const [words, numbers, bare] = await Promise.all([
    Promise.all(verbs.map((verb) => cli(verb, "mail"))),
    Promise.all(verbs.map((verb) => cli(verb, "999", "--json"))),
    cli("retry"),
  ]);
  for (const { code, err } of words)
    expect([code, err]).toEqual([2, expect.stringContaining('"mail" is not a task id')]);
  for (const { code, err } of numbers) expect([code, err]).toEqual([1, expect.stringContaining('"task_not_found"')]);
  expect(bare.code).toBe(2);
});

test("sluice tasks show prints the progress that a running task has reported", async () => {
  const s = await scene();
  const release = signal();
  const slow = task("slow");
  const handler = slow.handle(async (_, ctx) => {
    ctx.progress(0.4, { rows: 12 });
    await release.promise;
  });
  await s.worker({ handlers: [handler] });
  const handle = await s.sluice.enqueue(slow);
  const { at } = await until("the progress", async () => (await handle.status())?.progress);
  expect((await on(s)("show", handle.id)).out).toContain(`  progress  40 % at ${at.toISOString()}, {"rows":12}\n`);
  release.resolve();
});
