import { type as ark } from "arktype";
import * as v from "valibot";
import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import {
  cancel,
  fail,
  FatalError,
  limit,
  snooze,
  task,
  type,
  type CancelAnswer,
  type EnqueuedMany,
  type Sluice,
  type TaskContract,
  type TaskHandle,
  type TaskStatus,
} from "../../src/index.js";

// tsc proves these without running them: each @ts-expect-error fails the type check if the line below it compiles. The
// lines are never called, so they need no database.
declare const sluice: Sluice;
const compiled = (lines: () => unknown) => expect(lines).toBeTypeOf("function");

const output = type<{ sent: boolean }>();
const contracts = {
  zod: task("zod", {
    input: z.object({ at: z.coerce.date(), n: z.string().default("0") }),
    output,
  }),
  valibot: task("valibot", {
    input: v.object({ at: v.pipe(v.string(), v.toDate()), n: v.optional(v.string(), "0") }),
    output,
  }),
  arktype: task("arktype", { input: ark({ at: "string.date.parse", n: "string = '0'" }), output }),
};

describe("the types of a task come from its contract", () => {
  test("with a zod schema", () => {
    const one = contracts.zod;
    compiled(async () => {
      const handle = await sluice.enqueue(one, { at: "2020-01-01" });
      expectTypeOf(handle).toEqualTypeOf<TaskHandle<{ sent: boolean }>>();
      expectTypeOf(await handle.result()).toEqualTypeOf<{ sent: boolean }>();
      // @ts-expect-error the schema takes a string
      await sluice.enqueue(one, { at: "2020-01-01", n: 5 });
      // @ts-expect-error one of the list is wrong
      await sluice.enqueueMany(one, [{ at: "2020-01-01" }, { at: 1, n: 5 }]);
    });
    one.handle((input) => {
      expectTypeOf(input).toEqualTypeOf<{ at: Date; n: string }>();
      return { sent: true };
    });
  });

  test("with a valibot schema", () => {
    const one = contracts.valibot;
    compiled(async () => {
      const handle = await sluice.enqueue(one, { at: "2020-01-01" });
      expectTypeOf(await handle.result({ timeoutMs: 5 })).toEqualTypeOf<{ sent: boolean }>();
      // @ts-expect-error the schema takes text, not what it makes of it
      await sluice.enqueue(one, { at: new Date() });
    });
    one.handle((input) => {
      expectTypeOf(input).toEqualTypeOf<{ at: Date; n: string }>();
      return { sent: true };
    });
  });

  test("with an arktype schema", () => {
    const one = contracts.arktype;
    compiled(async () => {
      const handle = await sluice.enqueue(one, { at: "2020-01-01" });
      expectTypeOf(await handle.result()).toEqualTypeOf<{ sent: boolean }>();
      // @ts-expect-error the schema takes text, not what it makes of it
      await sluice.enqueue(one, { at: new Date() });
    });
    one.handle((input) => {
      expectTypeOf(input).toEqualTypeOf<{ at: Date; n: string }>();
      return { sent: true };
    });
  });

  test("with only a type, or without an input", () => {
    const typed = task("typed", { input: type<{ id: string }>() });
    const bare = task("bare");
    compiled(async () => {
      await sluice.enqueue(bare);
      await sluice.enqueue(bare, undefined, { delayMs: 5 });
      await sluice.enqueueMany(typed, [{ id: "a" }], { idempotencyKey: (i) => i.id });
      await sluice.enqueueMany(
        typed,
        (async function* () {
          yield { id: "a" };
        })(),
      );
      expectTypeOf(await (await sluice.enqueue(typed, { id: "a" })).result()).toBeUnknown();
      // @ts-expect-error no input where there must be one
      await sluice.enqueue(typed);
      // @ts-expect-error an input where there is none
      await sluice.enqueue(bare, { id: "a" });
      // @ts-expect-error an option that does not exist
      await sluice.enqueue(typed, { id: "a" }, { delay: 5 });
      // @ts-expect-error a single key for many
      await sluice.enqueueMany(typed, [{ id: "a" }], { idempotencyKey: "a" });
    });
  });

  test("with a type that JSON changes: a Date arrives as a string", () => {
    interface Mail {
      readonly at: Date;
      readonly to: readonly { readonly name?: string; readonly since: Date | null }[];
    }
    const mail = task("mail", { input: type<Mail>(), output: type<{ at: Date; n: number }>() });
    mail.handle((input) => {
      expectTypeOf(input.at).toEqualTypeOf<string>();
      expectTypeOf(input.to[0]!.since).toEqualTypeOf<string | null>();
      expectTypeOf(input.to[0]!.name).toEqualTypeOf<string | undefined>();
      return { at: new Date(), n: 1 };
    });
    mail.handle(() => ({ at: "2020-01-01T00:00:00.000Z", n: 1 }));
    // @ts-expect-error a handler does not receive the Date that was enqueued
    compiled(() => mail.handle((input: Mail) => ({ at: input.at, n: 1 })));
    // @ts-expect-error a result of another type
    compiled(() => mail.handle(() => ({ at: 5, n: 1 })));
    compiled(async () => {
      const handle = await sluice.enqueue(mail, { at: new Date(), to: [] });
      expectTypeOf(await handle.result()).toEqualTypeOf<{ at: string; n: number }>();
      // @ts-expect-error enqueue takes what the type says
      await sluice.enqueue(mail, { at: 5, to: [] });
    });
  });

  test("and a type that JSON keeps stays as it is", () => {
    interface Kept {
      readonly id: string;
      readonly tags?: readonly string[];
      readonly more: Record<string, number | null>;
      readonly next?: Kept;
    }
    const kept = task("kept", { input: type<Kept>(), output: type<Kept | undefined>() });
    kept.handle((input) => {
      expectTypeOf(input).toEqualTypeOf<Kept>();
      return input;
    });
    // oxlint-disable-next-line typescript/no-explicit-any -- any is what is tested
    task("any", { input: type<any>() }).handle((input) => expectTypeOf(input).toBeAny());
    task("unknown", { input: type<unknown>() }).handle((input) => expectTypeOf(input).toBeUnknown());
    task("none", { input: type<undefined>(), output: type<void>() }).handle((input) => {
      expectTypeOf(input).toEqualTypeOf<undefined>();
    });
    task("union", { input: type<{ k: "a"; n: number } | { k: "b" }>() }).handle((input) =>
      input.k === "a" ? expectTypeOf(input.n).toBeNumber() : null,
    );
  });

  test("and the output of its schema types order, limits and keys", () => {
    const tenant = limit("tenant", { perKey: 5 });
    const { input } = contracts.zod;
    task("placed", {
      input,
      order: (i) => {
        expectTypeOf(i).toEqualTypeOf<{ at: Date; n: string }>();
        return i.n;
      },
      limits: (i) => [tenant.for(i.n)],
    });
    // @ts-expect-error a Date is no key
    compiled(() => task("placed", { input, order: (i) => i.at }));
  });
});

describe("the types of a handler's outcome", () => {
  test("allow cancel, snooze and fail beside a typed output", () => {
    const one = contracts.zod;
    one.handle(() => snooze(5));
    one.handle(async () => cancel("no"));
    one.handle(({ n }) => (n === "0" ? fail("no") : { sent: true }));
    one.handle(async (_, ctx) => ctx.transaction(async () => (ctx.attempt > 1 ? snooze(5) : { sent: true })));
    one.handle(() => new FatalError("no"));
    // @ts-expect-error any other error is not a result
    compiled(() => one.handle(() => new Error("no")));
    // @ts-expect-error a result of another type beside an outcome
    compiled(() => one.handle(({ n }) => (n === "0" ? snooze(5) : { sent: "yes" })));
  });

  test("leave the type of the result as it is", () => {
    const handler = contracts.zod.handle(() => snooze(5));
    expect(handler.contract).toBe(contracts.zod);
    compiled(async () => {
      const handle = await sluice.enqueue(handler.contract, { at: "2020-01-01" });
      expectTypeOf(await handle.result()).toEqualTypeOf<{ sent: boolean }>();
    });
  });
});

describe("the types of the client", () => {
  test("declare what its methods return", () => {
    compiled(async () => {
      const handle = sluice.task<number>("1");
      expectTypeOf(await handle.result()).toBeNumber();
      expectTypeOf(await handle.status()).toEqualTypeOf<TaskStatus | null>();
      expectTypeOf(await handle.cancel()).toEqualTypeOf<CancelAnswer>();
      expectTypeOf(await sluice.retry(handle.id)).toBeBoolean();
      const many = await sluice.enqueueMany(contracts.zod, []);
      expectTypeOf(many).toEqualTypeOf<EnqueuedMany>();
      expectTypeOf(many.ids()).toEqualTypeOf<string[]>();
    });
  });

  test("accept contracts of every kind and limits in sync", () => {
    compiled(() => sluice.sync([...Object.values(contracts), task("bare"), limit("l", { total: 1 })]));
    // @ts-expect-error a name is neither
    compiled(() => sluice.sync(["mail"]));
  });

  test("accept handlers of every kind in a worker", () => {
    const handlers = Object.values(contracts).map((one) =>
      (one as unknown as TaskContract).handle(() => ({ sent: true })),
    );
    compiled(() => sluice.worker({ handlers: [...handlers, task("bare").handle(() => 1)] }));
    compiled(() => sluice.worker({ handlers: [contracts.zod.handle(async () => ({ sent: true }))] }));
    // @ts-expect-error a result of another type
    compiled(() => contracts.zod.handle(() => ({ sent: "yes" })));
  });

  test("accept only the parts of a limit in limits.set", () => {
    compiled(() => sluice.limits.set("mail", { total: 5, perKey: null }));
    compiled(() => sluice.limits.set(limit("mail", { total: 5 }), { total: "declared" }));
    // @ts-expect-error misspelt
    compiled(() => sluice.limits.set("mail", { totals: 5 }));
    // @ts-expect-error not a number
    compiled(() => sluice.limits.set("mail", { total: "5" }));
  });
});
