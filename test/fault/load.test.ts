import { expect, test } from "vitest";
import { Plan } from "../../fault/load/plan.js";
import { contracts, groups, limitsOf, terms, typeNames, unservedBy, type TypeName } from "../../fault/load/terms.js";
import { randomOf } from "../../fault/random.js";

const floodsOf = (types: readonly TypeName[]) => {
  const plan = new Plan("p", randomOf(7), types);
  return Array.from({ length: 4 }, (_, n) => plan.flood((n + 1) * 500)!);
};

test("four floods bring more tasks to every group than it has slots", () => {
  const tasks = new Map<string, number>();
  for (const { works } of floodsOf(typeNames))
    for (const { limits } of works) tasks.set(limits[0]!, (tasks.get(limits[0]!) ?? 0) + 1);
  expect(tasks.size).toBe(groups.length);
  for (const { name, total } of groups) expect(tasks.get(name), name).toBeGreaterThan(total!);
});

test("floods share their groups between two types in different queues", () => {
  const types = floodsOf(typeNames).map(({ type }) => type);
  expect(new Set(types.map((type) => contracts[type].queue))).toEqual(new Set(["default", "side"]));
  expect(new Plan("p", randomOf(7), ["plain"]).flood(1_000)).toBeNull();
});

test("the claims of a task name the slots that the engine gives it", () => {
  for (const type of typeNames) {
    const plan = new Plan("p", randomOf(3), [type]);
    const { works } = plan.next(5);
    for (const work of works) {
      const placed = contracts[type].place(work).limits.map(({ limit, key }) => {
        return key === null ? limit.name : `${limit.name}/${key}`;
      });
      expect(new Set([...placed, type]), type).toEqual(new Set(work.limits));
    }
  }
});

test("every limit of the load has a number that the audit knows", () => {
  const known = new Set([...Object.keys(terms.limits), ...typeNames]);
  for (const type of typeNames) {
    const key = type === "grouped" || type === "herded" ? groups[0]!.name : "*";
    for (const slot of limitsOf(type, key, "*")) expect(known, type).toContain(slot);
  }
});

test("two workers serve every type between them, and a single worker serves all", () => {
  const [first, second] = [unservedBy(0, 2), unservedBy(1, 2)];
  expect(first.filter((type) => second.includes(type))).toEqual([]);
  expect([first.length > 0, second.length > 0]).toEqual([true, true]);
  expect(unservedBy(0, 1)).toEqual([]);
});
