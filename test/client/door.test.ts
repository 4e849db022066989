import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isSluiceError, limit, task, type, type EnqueueOptions } from "../../src/index.js";
import { openHouse, type House } from "./house.js";

// Few names and small numbers, so that tasks compete for slots.
const limits = {
  total: limit("total", { total: 2 }),
  one: limit("one", { total: 1 }),
  keyed: limit("keyed", { perKey: 1 }),
  wide: limit("wide", { perKey: 3 }),
  both: limit("both", { perKey: 1, total: 2 }),
  __proto__x: limit("__proto__", { perKey: 2 }),
} as const;
type LimitName = keyof typeof limits;

interface Input {
  readonly order: string | number | null;
  readonly uses: readonly { readonly name: LimitName; readonly key: string | number }[];
  readonly body: unknown;
}

function usesOf({ uses }: Input) {
  return uses.map(({ name, key }) => {
    const one = limits[name];
    return one.perKey === undefined ? one : one.for(key);
  });
}

const input = type<Input>();
const contracts = [
  task("free", { input, order: (i) => i.order, limits: usesOf }),
  task("constructor", { input, queue: "__proto__", concurrency: 1, limits: usesOf }),
  task("scoped", { input, order: { key: (i) => i.order, scope: "s" }, priority: 9 }),
  task("blocking", { input, order: { key: (i) => i.order, onFailure: "block" }, concurrency: 3 }),
];

let house: House;
beforeAll(async () => {
  house = await openHouse();
  await house.work(contracts.map((one) => one.handle(() => {})));
});
afterAll(() => house.close());

// Mostly odd but valid options. Invalid ones must be refused without a trace.
const oddText = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.constantFrom("a", "b", "NULL", "{}", "{a,b}", "'", '"', "\\", ",", "%s", " "),
  },
  {
    weight: 6,
    arbitrary: fc.constantFrom("__proto__", "constructor", "\u{10ffff}", "\ufeff", "漢"),
  },
  { weight: 6, arbitrary: fc.string({ unit: "grapheme", minLength: 1, maxLength: 100 }) },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 600 }) },
  { weight: 1, arbitrary: fc.constantFrom("", "\0", "\ud800", "\u001e", "\u001f") },
);
const key = fc.oneof(fc.constantFrom("k1", "k2", 1, 2), oddText);
const names = Object.keys(limits) as LimitName[];
const inputs: fc.Arbitrary<Input> = fc.record({
  order: fc.option(key),
  uses: fc.uniqueArray(fc.record({ name: fc.constantFrom(...names), key }), {
    maxLength: 4,
    selector: (use) => use.name,
  }),
  body: fc.oneof({ weight: 10, arbitrary: fc.jsonValue() }, { weight: 1, arbitrary: fc.anything() }),
});
const group = fc.oneof(fc.constantFrom("g1", "one", "total", "constructor", "blocking"), oddText);
const options: fc.Arbitrary<EnqueueOptions> = fc
  .record(
    {
      priority: fc.oneof(fc.integer({ min: -32_000, max: 32_001 }), fc.constantFrom(0, 1)),
      delayMs: fc.integer({ min: 0, max: 30 }),
      idempotencyKey: fc.uuid(),
      group,
      groupLimit: fc.integer({ min: 1, max: 3 }),
    },
    { requiredKeys: [] },
  )
  .map(({ groupLimit, ...rest }) => (rest.group === undefined ? rest : { ...rest, groupLimit }));
interface Call {
  readonly contract: number;
  readonly inputs: readonly Input[];
  readonly options: EnqueueOptions;
}
const call: fc.Arbitrary<Call> = fc.record({
  contract: fc.nat({ max: contracts.length - 1 }),
  inputs: fc.array(inputs, { minLength: 1, maxLength: 3 }),
  options: fc.oneof(options, fc.constant({})),
});

/** The ids of accepted tasks. */
async function enqueue({ contract, inputs: list, options: all }: Call): Promise<string[]> {
  const { idempotencyKey, ...rest } = all;
  try {
    const one = contracts[contract]!;
    if (list.length === 1) return [(await house.sluice.enqueue(one, list[0]!, all)).id];
    const keyOf = idempotencyKey === undefined ? {} : { idempotencyKey: () => idempotencyKey };
    return (await house.sluice.enqueueMany(one, list, { ...rest, ...keyOf })).ids();
  } catch (e) {
    if (isSluiceError(e) && e.code !== "database_unavailable") return [];
    throw e;
  }
}

test("any accepted enqueue is claimed and completed, and leaves no lane behind", async () => {
  let accepted = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 20, maxLength: 60 }), async (calls) => {
      const ids = (await Promise.all(calls.map(enqueue))).flat();
      accepted += ids.length;
      await Promise.all(ids.map((id) => house.sluice.task(id).result({ timeoutMs: 10_000 })));
      expect(await house.sql("select * from sluice.violation")).toEqual([]);
    }),
    { numRuns: 20, endOnFailure: true },
  );
  expect(accepted).toBeGreaterThan(100);
}, 120_000);
