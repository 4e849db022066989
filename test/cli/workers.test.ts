import { expect, test } from "vitest";
import { task } from "../../src/index.js";
import { scene } from "../flow/scene.js";
import { sluice } from "./run.js";

test("sluice workers list prints the workers with their load as text and as JSON", async () => {
  const s = await scene();
  const cli = (...args: string[]) => sluice(["workers", ...args], { DATABASE_URL: s.url });
  expect(await cli("list")).toEqual({ code: 0, err: "", out: "no workers\n" });
  await s.sluice.sync([task("send", { queue: "mail" }), task("pay")]);
  // A worker of another process, of which only the row is left.
  await s.sql.query(`insert into sluice.worker
      (id, name, streams, lease_ms, expires_at, connections, capacity_max, capacity_available, memory_bytes, draining,
       pressure, pressure_reasons)
    select 1, 'w-1', array_agg(id), 7200000, sluice.clock() + interval '90 min', 9, 7, 4, 5 * 1048576, true,
      'reduced', '{memory,event_loop_delay}'
    from sluice.stream`);
  const [people, programs, wrong] = await Promise.all([
    cli("list"),
    cli("list", "--json"),
    cli("list", "--limit", "0"),
  ]);
  expect(people.out).toBe(
    "worker  state     tasks   memory  lease  pressure                            serves\n" +
      "w-1     draining  0 of 7  5 MiB   1 h    reduced (memory, event_loop_delay)  default/pay, mail/send\n",
  );
  expect(JSON.parse(programs.out)).toMatchObject({
    workers: [{ name: "w-1", capacity: 7, inUse: 0, serves: [{ queue: "default", type: "pay" }, { queue: "mail" }] }],
  });
  expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining("limit")]);
});
