import { expect, test } from "vitest";
import { limit, task } from "../../src/index.js";
import { scene } from "../flow/scene.js";
import { sluice } from "./run.js";

test("sluice explain explains a task and a queue as text and as JSON", async () => {
  const s = await scene();
  const mail = task("mail", { queue: "post", limits: [limit("mail", { total: 0 })] });
  const handle = await s.sluice.enqueue(mail);
  await s.sluice.enqueue(mail);
  const cli = (...args: string[]) => sluice(["explain", ...args], { DATABASE_URL: s.url });
  const [people, programs, queue, queueJson] = await Promise.all([
    cli(handle.id),
    cli(handle.id, "--json"),
    cli("--queue", "post"),
    cli("--queue", "post", "--json"),
  ]);
  expect(people).toEqual({
    code: 0,
    err: "",
    out:
      `task ${handle.id}: mail in queue post, waiting\n` +
      '  limit "mail" is set to 0\n' +
      '  then: no live worker serves "mail" in queue "post"\n',
  });
  const { at: _at, ...same } = JSON.parse(JSON.stringify(await handle.explain())) as { at: string };
  expect(JSON.parse(programs.out)).toMatchObject(same);
  expect(queue.out).toBe(
    `queue post: no live workers\n  2 "mail" at limit "mail", which is set to 0; for example task ${handle.id}\n`,
  );
  const { at: _then, ...whole } = await s.sluice.explainQueue("post");
  expect(JSON.parse(queueJson.out)).toMatchObject(whole);
});

test("sluice explain refuses unknown tasks, unknown queues and ambiguous arguments", async () => {
  const s = await scene();
  const cli = (...args: string[]) => sluice(["explain", ...args], { DATABASE_URL: s.url });
  const [none, both, absent, word, nowhere] = await Promise.all([
    cli(),
    cli("1", "--queue", "q"),
    cli("1"),
    cli("one"),
    cli("--queue", "nowhere"),
  ]);
  const told = ({ code, err }: typeof none, part: string) =>
    expect([code, err]).toEqual([code, expect.stringContaining(part)]);
  expect([none.code, both.code, word.code]).toEqual([2, 2, 2]);
  told(none, "pass the id of a task, or --queue and the name of a queue");
  told(both, "not both");
  told(word, "did you mean --queue one?");
  expect([absent.code, absent.err]).toEqual([1, expect.stringContaining("task_not_found")]);
  expect([nowhere.code, nowhere.err]).toEqual([1, expect.stringContaining("unknown_queue")]);
  told(nowhere, "the queues are");
});
