import { expect, test } from "vitest";
import { task } from "../../src/index.js";
import { scene, type Scene } from "../flow/scene.js";
import { sluice, type Said } from "./run.js";

const on =
  (s: Scene) =>
  (...args: string[]): Promise<Said> =>
    sluice(["schedules", ...args], { DATABASE_URL: s.url });
const parsed = ({ out }: Said): unknown => JSON.parse(out);
const report = task("report", { queue: "office" });

async function twoSchedules(): Promise<Scene> {
  const s = await scene();
  await s.sluice.schedules.set("nightly", { cron: "0 3 * * *", timeZone: "Europe/Berlin", task: report });
  await s.sluice.schedules.set("often", { everyMs: 3_600_000, task: report, enabled: false });
  return s;
}

test("sluice schedules list and show print schedules as text and as JSON", async () => {
  const s = await twoSchedules();
  const cli = on(s);
  const { nextAt } = await s.sluice.schedules.get("nightly");
  const next = nextAt!.toISOString();
  const [list, first, one, json] = await Promise.all([
    cli("list"),
    cli("list", "--limit", "1", "--json"),
    cli("show", "nightly"),
    cli("show", "often", "--json"),
  ]);
  expect(list).toEqual({
    code: 0,
    err: "",
    out:
      "schedule  timing                     task           state             next\n" +
      `nightly   0 3 * * * (Europe/Berlin)  office/report  ticking           ${next}\n` +
      "often     every 3600000 ms           office/report  disabled in code  -\n",
  });
  expect(parsed(first)).toMatchObject({ schedules: [{ name: "nightly", nextAt: next }], after: "nightly" });
  expect(one.out).toBe(
    "schedule nightly: report in queue office, ticking\n" +
      "  timing  0 3 * * * (Europe/Berlin)\n" +
      "  missed  once\n" +
      `  next    ${next}\n`,
  );
  expect(parsed(json)).toMatchObject({ name: "often", everyMs: 3_600_000, enabled: false, nextAt: null });
});

test("sluice schedules pause, resume, trigger and remove control a schedule", async () => {
  const s = await twoSchedules();
  const cli = on(s);
  const status = () => s.sluice.schedules.get("nightly");
  const [unasked, kept] = await Promise.all([cli("pause", "nightly"), cli("remove", "nightly")]);
  expect([unasked.code, kept.code, (await status()).paused]).toEqual([2, 2, false]);
  expect(parsed(await cli("pause", "nightly", "--yes", "--json"))).toEqual({ schedule: "nightly", paused: true });
  expect((await status()).paused).toBe(true);
  const { task: id } = parsed(await cli("trigger", "nightly", "--json")) as { task: string };
  expect(await s.sluice.task(id).status()).toMatchObject({ type: "report", queue: "office" });
  const resumed = await cli("resume", "nightly");
  const { paused, nextAt } = await status();
  expect(paused).toBe(false);
  expect(resumed.out).toBe(`schedule nightly: resumed, next tick at ${nextAt!.toISOString()}\n`);
  expect((await cli("remove", "nightly", "--yes")).out).toBe("schedule nightly: removed\n");
  expect((await s.sluice.schedules.list()).map(({ name }) => name)).toEqual(["often"]);
});

test("sluice schedules names the schedules that exist if one does not", async () => {
  const s = await twoSchedules();
  const cli = on(s);
  const said = await Promise.all([
    cli("show", "nihgtly"),
    cli("pause", "nihgtly", "--yes"),
    cli("resume", "nihgtly"),
    cli("trigger", "nihgtly"),
    cli("remove", "nihgtly", "--yes"),
  ]);
  const message = 'there is no schedule named "nihgtly"; there are "nightly", "often"; did you mean nightly?';
  for (const { code, err } of said) expect([code, err]).toEqual([1, `error unknown_schedule: ${message}\n`]);
  expect((await on(await scene())("list")).out).toBe("no schedules\n");
});
