import { AsyncLocalStorage } from "node:async_hooks";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { EnqueueOptions } from "../../src/core/enqueue.js";
import { SluiceError } from "../../src/core/error.js";
import type { TaskTerms } from "../../src/core/terms.js";
import { limit, task, type } from "../../src/index.js";
import { Batcher, type SendBatch } from "../../src/tasks/batcher.js";
import { prepare, shared, type Prepared } from "../../src/tasks/prepare.js";

interface Input {
  readonly n: number;
  readonly key?: string;
  readonly text?: string;
}

const note = task("note", { input: type<Input>() }) as unknown as TaskTerms<never>;
const other = task("other", { input: type<Input>() }) as unknown as TaskTerms<never>;
const ordered = task("ordered", {
  input: type<Input>(),
  order: ({ key }) => key!,
}) as unknown as TaskTerms<never>;
const keyed = task("keyed", {
  input: type<Input>(),
  limits: [limit("tenant", { perKey: 1 }).for(({ key }: Input) => key!)],
}) as unknown as TaskTerms<never>;

/** A statement in flight, which the test answers. */
interface Statement {
  readonly type: string;
  readonly priority: number;
  readonly inputs: readonly number[];
  readonly traces: readonly (string | null)[];
  /** Every task gets its number as its id. */
  commit(): Promise<void>;
  fail(e: unknown): Promise<void>;
}

/** A batcher whose statements the test answers. */
function services(statementsMax = 6) {
  const sent: Statement[] = [];
  const send: SendBatch = (terms, common, { items, traces }) =>
    new Promise((resolve, reject) => {
      const inputs = items.map(numberOf);
      sent.push({
        type: terms.type,
        priority: common.priority,
        inputs,
        traces,
        commit: () => (resolve(inputs.map(String)), settled()),
        fail: (e) => (reject(e), settled()),
      });
    });
  const batcher = new Batcher(send, statementsMax);
  const call = (
    terms: TaskTerms<never>,
    input: Input,
    options: EnqueueOptions = {},
    trace: string | null = null,
  ): Promise<string> => {
    const item = prepare(terms, input, 1_000_000) as Prepared;
    const outcome = batcher.add(terms, shared(terms, options), item, trace);
    // Most tests handle rejections later than they occur.
    outcome.catch(() => {});
    return outcome;
  };
  return { batcher, sent, call };
}

const numberOf = ({ input }: Prepared): number => (JSON.parse(input) as Input).n;

/** Lets everything that an answer triggers happen. */
async function settled(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

const upTo = (count: number, from = 0): number[] => Array.from({ length: count }, (_, i) => from + i);

afterEach(() => void vi.useRealTimers());

describe("calls that share a statement", () => {
  test("a call on an idle client is sent without a timer", async () => {
    vi.useFakeTimers();
    const { sent, call } = services();
    const id = call(note, { n: 1 });
    await settled();
    expect(sent.map(({ inputs }) => inputs)).toEqual([[1]]);
    await sent[0]!.commit();
    expect(await id).toBe("1");
  });

  test("calls of one tick share a statement, in the order of the calls", async () => {
    const { sent, call } = services();
    const ids = upTo(50).map((n) => call(note, { n }));
    await settled();
    expect(sent.map(({ inputs }) => inputs)).toEqual([upTo(50)]);
    await sent[0]!.commit();
    expect(await Promise.all(ids)).toEqual(upTo(50).map(String));
  });

  test("calls that are made while a statement is under way share the next one", async () => {
    const { sent, call } = services();
    void call(note, { n: 0 });
    await settled();
    for (const n of upTo(10, 1)) {
      void call(note, { n });
      await settled();
    }
    expect(sent).toHaveLength(1);
    await sent[0]!.commit();
    expect(sent.map(({ inputs }) => inputs)).toEqual([[0], upTo(10, 1)]);
  });

  test("calls that differ in type, priority, delay, time or group share no statement", async () => {
    const { sent, call } = services(20);
    const runAt = new Date(Date.now() + 60_000);
    const options = [{}, { priority: 1 }, { delayMs: 5 }, { runAt }, { group: "g" }] as const;
    for (const one of options) for (const n of [1, 2]) void call(note, { n }, one);
    void call(note, { n: 3 }, { group: "g", groupLimit: 2 });
    void call(other, { n: 1 });
    await settled();
    const inputs = [...options.map(() => [1, 2]), [3], [1]];
    expect(sent.map((one) => one.inputs)).toEqual(inputs);
  });

  test("calls with different keys of one limit share a statement", async () => {
    const { sent, call } = services();
    void call(keyed, { n: 1, key: "a" });
    void call(keyed, { n: 2, key: "b" });
    await settled();
    expect(sent.map(({ inputs }) => inputs)).toEqual([[1, 2]]);
  });

  test("each call keeps its own trace", async () => {
    const { sent, call } = services();
    void call(note, { n: 1 }, {}, "one");
    void call(note, { n: 2 });
    await settled();
    expect(sent.map(({ traces }) => traces)).toEqual([["one", null]]);
  });

  test("a statement holds at most 1,000 tasks and the others follow in order", async () => {
    const { sent, call } = services();
    for (const n of upTo(1_001)) void call(note, { n });
    await settled();
    expect(sent.map(({ inputs }) => inputs)).toEqual([upTo(1_000)]);
    await sent[0]!.commit();
    expect(sent[1]!.inputs).toEqual([1_000]);
  });

  test("a statement holds at most 1 MiB of inputs", async () => {
    const { sent, call } = services();
    for (const n of [1, 2, 3]) void call(note, { n, text: "x".repeat(500_000) });
    await settled();
    await sent[0]!.commit();
    expect(sent.map(({ inputs }) => inputs)).toEqual([[1, 2], [3]]);
  });

  test("a statement runs in the asynchronous context of its first call", async () => {
    const context = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const answers: (() => void)[] = [];
    const batcher = new Batcher((_terms, _common, { items }) => {
      seen.push(context.getStore());
      return new Promise((resolve) => answers.push(() => resolve(items.map(() => "1"))));
    }, 6);
    const call = (): Promise<string> =>
      batcher.add(note, shared(note, {}), prepare(note, { n: 1 }, 100) as Prepared, null);
    void context.run("first", call);
    await settled();
    void context.run("second", call);
    void context.run("third", call);
    answers[0]!();
    await settled();
    expect(seen).toEqual(["first", "second"]);
  });
});

describe("the number of statements in flight", () => {
  test("calls of different statement keys do not wait for each other", async () => {
    const { sent, call } = services();
    for (const delayMs of upTo(5)) void call(note, { n: delayMs }, { delayMs });
    await settled();
    expect(sent).toHaveLength(5);
  });

  test("there are never more statements in flight than connections, and the oldest call is sent first", async () => {
    const { sent, call } = services(2);
    for (const delayMs of upTo(5)) void call(note, { n: delayMs }, { delayMs });
    await settled();
    expect(sent.map(({ inputs }) => inputs)).toEqual([[0], [1]]);
    await sent[1]!.commit();
    expect(sent.map(({ inputs }) => inputs)).toEqual([[0], [1], [2]]);
  });

  test("a statement without a reply for a second holds up no other call", async () => {
    vi.useFakeTimers();
    const { sent, call } = services();
    void call(note, { n: 1 });
    await settled();
    const second = call(note, { n: 2 });
    await vi.advanceTimersByTimeAsync(999);
    expect(sent).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(sent.map(({ inputs }) => inputs)).toEqual([[1], [2]]);
    await sent[1]!.commit();
    expect(await second).toBe("2");
    void call(note, { n: 3 });
    await settled();
    expect(sent).toHaveLength(3);
  });

  test("a task of an order key waits for a stalled statement with an earlier task of the key, and other tasks do not", async () => {
    vi.useFakeTimers();
    const { sent, call } = services();
    void call(ordered, { n: 1, key: "a" });
    await settled();
    await vi.advanceTimersByTimeAsync(1_000);
    void call(ordered, { n: 2, key: "a" });
    void call(ordered, { n: 3, key: "b" });
    await settled();
    expect(sent.map(({ inputs }) => inputs)).toEqual([[1], [3]]);
    await sent[0]!.commit();
    await sent[1]!.commit();
    expect(sent.map(({ inputs }) => inputs)).toEqual([[1], [3], [2]]);
  });
});

describe("order keys in the batcher", () => {
  test("concurrent enqueues of one order key keep the order of the calls although their priorities differ", async () => {
    const { sent, call } = services();
    void call(ordered, { n: 1, key: "a" });
    void call(ordered, { n: 2, key: "a" }, { priority: 5 });
    void call(ordered, { n: 3, key: "b" }, { priority: 5 });
    void call(ordered, { n: 4, key: "a" });
    await settled();
    expect(sent.map(({ inputs }) => inputs)).toEqual([[1], [3]]);
    await sent[1]!.commit();
    expect(sent).toHaveLength(2);
    await sent[0]!.commit();
    expect(sent.map(({ inputs }) => inputs)).toEqual([[1], [3], [2]]);
    await sent[2]!.commit();
    expect(sent.map(({ inputs }) => inputs)).toEqual([[1], [3], [2], [4]]);
  });

  test("two order keys whose calls alternate between two statement keys do not wait for each other in a circle", async () => {
    const { sent, call } = services();
    const numbers = upTo(200);
    const outcomes = numbers.map((n) => call(ordered, { n, key: n % 3 === 0 ? "a" : "b" }, { priority: (n >> 1) % 2 }));
    await settled();
    for (let i = 0; i < sent.length; i++) await sent[i]!.commit();
    expect(await Promise.all(outcomes)).toEqual(numbers.map(String));
    const order = sent.flatMap(({ inputs }) => inputs);
    for (const isOf of [(n: number) => n % 3 === 0, (n: number) => n % 3 !== 0])
      expect(order.filter(isOf)).toEqual(numbers.filter(isOf));
  });

  test("tasks of one order key and one statement key share a statement", async () => {
    const { sent, call } = services();
    for (const n of upTo(5)) void call(ordered, { n, key: "a" });
    await settled();
    for (const n of upTo(5, 5)) void call(ordered, { n, key: n % 2 === 0 ? "a" : "b" });
    await sent[0]!.commit();
    expect(sent.map(({ inputs }) => inputs)).toEqual([upTo(5), upTo(5, 5)]);
  });
});

describe("outcomes of batched calls", () => {
  const refusal = new SluiceError("input_not_storable", "no");

  test("a refused call rejects alone, and the calls that shared its statement succeed", async () => {
    const { sent, call } = services();
    const outcomes = upTo(16).map((n) => call(note, { n }));
    await settled();
    for (let i = 0; i < sent.length; i++) {
      const statement = sent[i]!;
      await (statement.inputs.includes(11) ? statement.fail(refusal) : statement.commit());
    }
    const results = await Promise.allSettled(outcomes);
    expect(results.map((r) => (r.status === "fulfilled" ? r.value : r.reason))).toEqual(
      upTo(16).map((n) => (n === 11 ? refusal : String(n))),
    );
    // One statement with all tasks, and two for each time that the rest is halved.
    expect(sent).toHaveLength(9);
  });

  test("every call of a statement whose reply is lost rejects, and the statement is not sent again", async () => {
    const { sent, call } = services();
    const outcomes = upTo(4).map((n) => call(note, { n }));
    await settled();
    const lost = new SluiceError("database_unavailable", "gone");
    await sent[0]!.fail(lost);
    expect(sent).toHaveLength(1);
    const results = await Promise.allSettled(outcomes);
    expect(results).toEqual(outcomes.map(() => ({ status: "rejected", reason: lost })));
  });

  test("tasks behind a refused one of their order key are enqueued in their order", async () => {
    const { sent, call } = services();
    const outcomes = upTo(4).map((n) => call(ordered, { n, key: "a" }));
    await settled();
    for (let i = 0; i < sent.length; i++) {
      const statement = sent[i]!;
      await (statement.inputs.includes(0) ? statement.fail(refusal) : statement.commit());
    }
    expect((await Promise.allSettled(outcomes)).map(({ status }) => status)).toEqual([
      "rejected",
      ...upTo(3).map(() => "fulfilled"),
    ]);
    expect(sent.map(({ inputs }) => inputs)).toEqual([upTo(4), [0, 1], [0], [1], [2, 3]]);
  });

  test("a closed batcher rejects the calls it has not sent, and sends nothing more", async () => {
    const { batcher, sent, call } = services();
    const first = [call(note, { n: 1 }), call(note, { n: 2 })];
    await settled();
    const second = call(note, { n: 3 });
    const closed = new SluiceError("closed", "closed");
    batcher.close(closed);
    await expect(second).rejects.toBe(closed);
    await expect(call(note, { n: 4 })).rejects.toBe(closed);
    // The halves of a statement in flight are not sent either.
    await sent[0]!.fail(refusal);
    expect(sent).toHaveLength(1);
    for (const outcome of first) await expect(outcome).rejects.toBe(closed);
  });
});
