import { expect, onTestFinished, test } from "vitest";
import { refusal, Scene } from "../support/sql.js";
import {
  committedBesideForget,
  declaredAgain,
  forget,
  groupWithTasks,
  openEnqueue,
  setWithTasks,
  unusedGroup,
} from "./schedules/forget.js";
import { observe, wanted } from "./schedules/schedule.js";

async function open(): Promise<Scene> {
  const scene = await Scene.open();
  onTestFinished(() => scene.close());
  return scene;
}

test("a group is not forgotten while an open transaction has enqueued a task of it", async () => {
  expect(await observe(openEnqueue)).toEqual(wanted(openEnqueue));
});

test("a group whose task is committed during the keeper's check is not forgotten", async () => {
  expect(await observe(committedBesideForget)).toEqual(wanted(committedBesideForget));
});

test("a group is forgotten only when no task refers to it, live or in history", async () => {
  expect(await observe(groupWithTasks)).toEqual(wanted(groupWithTasks));
});

test("a group in a set of totals is forgotten with the set when no task refers to the set", async () => {
  expect(await observe(setWithTasks)).toEqual(wanted(setWithTasks));
});

test("a group that is declared again is not forgotten", async () => {
  expect(await observe(declaredAgain)).toEqual(wanted(declaredAgain));
});

test("a group is forgotten only after it was unused for the given time", async () => {
  const [a] = await (await open()).sessions(1);
  await unusedGroup(a);
  expect(await forget(a, 3_600_000)).toBe(0);
  await a.rows("update sluice.limits set unused_since = unused_since - interval '61 minutes'");
  expect(await forget(a, 3_600_000)).toBe(1);
  expect(await a.rows("select from sluice.limits union all select from sluice.gate")).toEqual([]);
  expect(await a.rows("select from sluice.gate_stream")).toEqual([]);
});

test("limits with keys and limits of the code, an operator or a schedule are not forgotten", async () => {
  const [a] = await (await open()).sessions(1);
  const { stream } = await unusedGroup(a, "overridden");
  await a.setLimit("overridden", { total: 3 });
  await unusedGroup(a, "scheduled");
  await a.rows(
    `select sluice.set_schedule('s', null, 'd', $1, '1', '* * * * *', 'UTC', null, 'skip', 0, 1, null, false,
      array['scheduled'], array[''], true, sluice.clock() + interval '1 hour')`,
    [stream],
  );
  await a.value("select sluice.declare_limit('keyed', null, 1, p_transient => true)");
  await a.limit("declared", { total: 1 });
  const used = await a.value<number>("select sluice.declare_limit('used', 1, null, p_transient => true)");
  await a.type("u", { limits: [used] });
  for (let i = 0; i < 3; i++) expect(await forget(a)).toBe(0);
});

test("a declaration that waits for a group being forgotten creates the group again", async () => {
  const scene = await open();
  const [keeper, user] = await scene.sessions(2);
  const { group } = await unusedGroup(keeper);
  await keeper.begin();
  expect(await forget(keeper)).toBe(1);
  const again = user.value<number>("select sluice.declare_limit('group', 1, null, p_transient => true)");
  expect(await scene.blocked(again)).toBe(true);
  await keeper.commit();
  expect(await again).toBeGreaterThan(group);
});

test("a task of a forgotten group is refused", async () => {
  const [a] = await (await open()).sessions(1);
  const { stream, group } = await unusedGroup(a);
  await forget(a);
  expect(await refusal(a.enqueue(stream, { limits: [group] }))).toBe("unknown_limit");
});

test("the keeper does not wait for an open transaction that uses a group", async () => {
  const scene = await open();
  const [keeper, user] = await scene.sessions(2);
  const { stream, group } = await unusedGroup(keeper, "one");
  await unusedGroup(keeper, "two");
  await user.begin();
  await user.enqueue(stream, { limits: [group] });
  const forgotten = forget(keeper);
  expect(await scene.blocked(forgotten)).toBe(false);
  expect(await forgotten).toBe(1);
  await user.rollback();
});

test("the keeper checks limits in pieces, each from where the last one ended", async () => {
  const [a] = await (await open()).sessions(1);
  for (let i = 0; i < 5; i++) await a.limit(`l${i}`, { total: 1 });
  const after = (from: number): Promise<number> => a.value("select after from sluice.forget_limits($1, 2, 0)", [from]);
  expect([await after(0), await after(2), await after(4)]).toEqual([2, 4, 0]);
});
