import { expect, test } from "vitest";
import { limit, task } from "../../src/index.js";
import { scene, type Scene } from "../flow/scene.js";
import { sluice, type Said } from "./run.js";

const on =
  (s: Scene) =>
  (...args: string[]): Promise<Said> =>
    sluice(["queues", ...args], { DATABASE_URL: s.url });

test("sluice queues list prints the backlog of each queue as text and as JSON", async () => {
  const s = await scene();
  const send = task("send", { queue: "mail" });
  await s.sluice.enqueueMany(send, [undefined, undefined]);
  await s.sluice.enqueue(send, undefined, { delayMs: 3_600_000 });
  await s.sluice.enqueue(task("pay", { queue: "bank", limits: [limit("bank", { total: 0 })] }));
  await s.sluice.pause("bank");
  await s.sql.query("update sluice.task set created_at = created_at - interval '2 hours'");
  const cli = on(s);
  const [people, programs, rest] = await Promise.all([cli("list"), cli("list", "--json"), cli("list", "--limit", "1")]);
  expect(people).toEqual({
    code: 0,
    err: "",
    out:
      "queue  scheduled  waiting  ready  running  oldest  workers\n" +
      "bank   0          1        0      0        2 h     0        paused\n" +
      "mail   1          0        2      0        2 h     0\n",
  });
  const listed = JSON.parse(JSON.stringify(await s.sluice.queues.list())) as object[];
  expect(JSON.parse(programs.out)).toEqual({
    queues: listed.map((queue) => ({ ...queue, at: expect.any(String) as string })),
    after: null,
  });
  expect(rest.out).toContain('more: --after "bank"');
});

test("sluice queues pause and resume change a queue, and name the queues that exist", async () => {
  const s = await scene();
  await s.sluice.enqueue(task("send", { queue: "mail" }));
  const cli = on(s);
  const paused = async () => (await s.sluice.queues.list())[0]!.paused;
  const unasked = await cli("pause", "mail", "--json");
  expect([unasked.code, await paused()]).toEqual([2, false]);
  expect(JSON.parse(unasked.err)).toMatchObject({ error: { code: "invalid_option" } });
  expect((await cli("pause", "mail", "--yes")).out).toBe("queue mail: paused\n");
  expect(await paused()).toBe(true);
  expect(JSON.parse((await cli("resume", "mail", "--json")).out)).toEqual({ queue: "mail", paused: false });
  expect(await paused()).toBe(false);
  for (const verb of [["pause", "--yes"], ["resume"]]) {
    const { code, err } = await cli(...verb, "mial");
    expect([code, err]).toEqual([1, expect.stringContaining('there is no queue named "mial"; there are "mail"')]);
    expect(err).toContain("did you mean mail?");
  }
});
