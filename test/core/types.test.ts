import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { issueClaim, type Claim } from "../../src/core/claim.js";
import type { TaskContext } from "../../src/core/context.js";
import type { EnqueueArgs } from "../../src/core/enqueue.js";
import { limit } from "../../src/core/limit.js";
import { type } from "../../src/core/schema.js";
import { task, type TaskContract, type TaskHandler } from "../../src/core/task.js";

// tsc checks these without running them: each @ts-expect-error fails the type check if the line below it
// compiles. The wrong lines are never called, so that nothing throws.
const compiled = (lines: () => unknown) => expect(lines).toBeTypeOf("function");

const at = z.object({ at: z.coerce.date(), n: z.string().default("0") });
const dated = task("dated", { input: at, output: type<{ sent: boolean }>() });
const plain = task("plain", { input: type<{ id: string }>() });
const bare = task("bare");

type InputOf<C> = C extends TaskContract<infer Input> ? Input : never;
declare function enqueue<Input, Output>(
  contract: TaskContract<Input, unknown, Output>,
  ...args: EnqueueArgs<Input>
): Promise<{ result(): Promise<Output> }>;

describe("inferred types", () => {
  test("enqueue takes the input type of the schema", () => {
    expectTypeOf<InputOf<typeof dated>>().toEqualTypeOf<z.input<typeof at>>();
    expectTypeOf<InputOf<typeof bare>>().toEqualTypeOf<undefined>();
    compiled(() => [
      enqueue(plain, { id: "a" }, { delayMs: 5 }),
      enqueue(bare),
      enqueue(bare, undefined, { priority: 1 }),
      // @ts-expect-error an input of another type
      enqueue(plain, { id: 5 }),
      // @ts-expect-error no input where there must be one
      enqueue(plain),
      // @ts-expect-error an input where there is none
      enqueue(bare, { id: "a" }),
      // @ts-expect-error an option that does not exist
      enqueue(plain, { id: "a" }, { delay: 5 }),
    ]);
  });

  test("a handler receives the output type of the schema", () => {
    dated.handle((input, ctx) => {
      expectTypeOf(input).toEqualTypeOf<{ at: Date; n: string }>();
      expectTypeOf(ctx).toEqualTypeOf<TaskContext>();
      return { sent: true };
    });
    bare.handle((input) => expectTypeOf(input).toEqualTypeOf<undefined>());
    // @ts-expect-error a result of another type
    compiled(() => dated.handle(() => ({ sent: "yes" })));
  });

  test("a result has the type of the output schema, or unknown", () => {
    compiled(async () => {
      const handle = await enqueue(dated, { at: "2020-01-01" });
      expectTypeOf(await handle.result()).toEqualTypeOf<{ sent: boolean }>();
      const other = await enqueue(plain, { id: "a" });
      expectTypeOf(await other.result()).toEqualTypeOf<unknown>();
    });
  });

  test("order and limits receive the parsed input", () => {
    task("t", {
      input: at,
      order: (i) => {
        expectTypeOf(i).toEqualTypeOf<{ at: Date; n: string }>();
        return i.n;
      },
      limits: (i) => [limit("a", { perKey: 1 }).for(i.n)],
    });
    task("t", { input: at, limits: [{ limit: limit("a", { perKey: 1 }), key: (i) => i.n }] });
  });

  test("handlers of different tasks fit into one list", () => {
    const handlers: TaskHandler[] = [dated.handle(() => ({ sent: true })), bare.handle(() => 1)];
    expect(handlers).toHaveLength(2);
  });

  test("a handler enqueues other tasks with their types", () => {
    bare.handle(async (_, ctx) => {
      await ctx.enqueue(plain, { id: "a" });
      // @ts-expect-error an input of another type
      await ctx.enqueue(plain, { id: 5 });
      // @ts-expect-error it is bound to the completion and takes no transaction
      await ctx.enqueue(plain, { id: "a" }, { tx: { query: () => Promise.resolve({ rows: [] }) } });
    });
  });
});

describe("type errors", () => {
  const tenant = limit("tenant", { perKey: 5 });
  const mail = limit("mail", { total: 5 });

  test("a limit per key without a key does not compile", () => {
    // @ts-expect-error in a list
    compiled(() => task("t", { limits: [tenant] }));
    // @ts-expect-error decided in code
    compiled(() => task("t", { limits: () => [tenant] }));
    compiled(() => task("t", { limits: [tenant.for("a"), mail] }));
  });

  test("a key for a limit without keys does not compile", () => {
    // @ts-expect-error it has only a total
    compiled(() => mail.for("a"));
  });

  test("a limit without a number does not compile", () => {
    // @ts-expect-error neither total nor perKey
    compiled(() => limit("x", {}));
  });

  test("a key function for another input does not compile", () => {
    const byName = tenant.for((i: { name: string }) => i.name);
    // @ts-expect-error the input has no name
    compiled(() => task("t", { input: type<{ id: string }>(), limits: [byName] }));
  });

  test("a key function that reads a missing field does not compile", () => {
    const input = type<{ id: string }>();
    compiled(() => task("t", { input, limits: [{ limit: tenant, key: (i) => i.id }] }));
    // @ts-expect-error misspelt
    compiled(() => task("t", { input, limits: [{ limit: tenant, key: (i) => i.typo }] }));
    // @ts-expect-error misspelt, in a function that decides all limits
    compiled(() => task("t", { input, limits: (i) => [tenant.for(i.typo)] }));
    // @ts-expect-error for() alone cannot know the input: it wants an annotation
    compiled(() => task("t", { input, limits: [tenant.for((i) => i.typo)] }));
  });

  test("an unknown option does not compile", () => {
    // @ts-expect-error misspelt
    compiled(() => task("t", { concurency: 5 }));
  });

  test("settling an unclaimed task does not compile", () => {
    const complete = <T>(claim: Claim<T>, result: NoInfer<T>) => ({ id: claim.id, result });
    const claim = issueClaim<{ sent: boolean }>("1", "t");
    expect(complete(claim, { sent: true }).id).toBe("1");
    // @ts-expect-error an id and a token are not a claim
    compiled(() => complete({ id: "1", token: "t" }, { sent: true }));
    // @ts-expect-error a result of another type
    compiled(() => complete(claim, { sent: "yes" }));
    // @ts-expect-error a claim of one result is no claim of another
    compiled((): Claim<{ sent: unknown }> => claim);
  });
});
