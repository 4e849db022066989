import { expect, test } from "vitest";
import { limit, task } from "../../src/index.js";
import { scene } from "../flow/scene.js";
import { sluice } from "./run.js";

test("sluice explain tells of a task and of a queue, for people and for programs", async () => {
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
      '  limit "mail" is set to 0: 0 of 0 out\n' +
      '  then: no live worker serves "mail" in queue "post"\n',
  });
  expect(JSON.parse(programs.out)).toEqual(JSON.parse(JSON.stringify(await handle.explain())));
  expect(queue.out).toBe(
    "queue post: 0 live workers, 0 of 0 places free\n" +
      `  2 of "mail" at limit "mail", 0 of 0 out; one is task ${handle.id}\n`,
  );
  expect(JSON.parse(queueJson.out)).toEqual(await s.sluice.explainQueue("post"));
});

test("sluice explain refuses what it cannot explain", async () => {
  const s = await scene();
  const cli = (...args: string[]) => sluice(["explain", ...args], { DATABASE_URL: s.url });
  const [none, both, absent, word, nowhere] = await Promise.all([
    cli(),
    cli("1", "--queue", "q"),
    cli("1"),
    cli("one"),
    cli("--queue", "nowhere"),
  ]);
  for (const said of [none, both]) {
    expect(said.code).toBe(2);
    expect(said.err).toContain("name a task, or a queue by --queue");
  }
  expect([absent.code, absent.err]).toEqual([1, expect.stringContaining("task_not_found")]);
  expect([word.code, word.err]).toEqual([1, expect.stringContaining("task_not_found")]);
  expect([nowhere.code, nowhere.err]).toEqual([1, expect.stringContaining("unknown_queue")]);
});
