import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { task, type, type Client, type Run } from "../../src/client.js";
import type { Ref, Reference } from "../../src/workflow/ref.js";
import type { Failure, Scope } from "../../src/workflow/scope.js";
import { workflow, type Workflow } from "../../src/workflow/workflow.js";

// These lines are compiled and never called: see door.test.ts.
declare const w: Scope;
const compiled = (lines: () => unknown) => expect(lines).toBeTypeOf("function");

interface Account {
  readonly id: string;
  readonly plan?: "free" | "paid";
  readonly since: Date;
}
type StoredAccount = {
  readonly id: string;
  readonly plan?: "free" | "paid";
  readonly since: string;
};

const listAccounts = task("list-accounts", {
  input: z.object({ region: z.string(), max: z.number().optional() }),
  output: type<{ accounts: Account[]; next: string | null; byId: Record<string, Account> }>(),
});
const syncAccount = task("sync-account", {
  input: type<{ account: { id: string }; at?: number }>(),
  output: type<{ rows: number }>(),
});
const report = task("report", {
  input: type<{ synced: ({ rows: number } | null)[]; since?: Date; note?: string | null }>(),
  output: type<string>(),
});
const planned = task("planned", { input: type<{ plan?: string }>() });
const tick = task("tick");

describe("the types of references", () => {
  test("are those of the stored values", () => {
    compiled(() => {
      const list = w.task("list", listAccounts, { region: "eu" });
      expectTypeOf(list.next).toExtend<Reference<string | null>>();
      expectTypeOf(list.accounts[0]!).toExtend<Reference<StoredAccount | null>>();
      expectTypeOf(list.accounts[0]!.since).toEqualTypeOf<Ref<string | null>>();
      expectTypeOf(list.byId["a"]!.id).toEqualTypeOf<Ref<string | null>>();
      // @ts-expect-error there is no such field
      expect(list.account);
      // @ts-expect-error what a run will have cannot be read now
      expect(list.next.length);
      // @ts-expect-error nor compared
      expect(list.next === "x");
      // @ts-expect-error nor mapped: that is what each is for
      expect(list.accounts.map);
    });
  });

  test("are unknown for a task without an output schema", () => {
    compiled(() => {
      const node = w.task("tick", tick);
      expectTypeOf<typeof node>().toExtend<Reference<unknown>>();
      // @ts-expect-error nothing is known of it
      expect(node.field);
    });
  });
});

describe("the types of node inputs", () => {
  test("accept values, references and objects of both", () => {
    compiled(() => {
      const list = w.task("list", listAccounts, { region: "eu", max: 3 });
      w.task("a", syncAccount, { account: { id: "x" }, at: 1 });
      w.task("d", tick);
      w.task("e", tick, undefined, { after: [list] });
      w.task("g", report, { synced: [], since: new Date() });
      w.each("f", syncAccount, list.accounts, (account) => ({ account }), { window: 1 });
      w.each("h", syncAccount, [{ id: "a" }], (account, at) => ({ account, at }), { window: 1 });
    });
  });

  test("refuse a wrong field, type or shape", () => {
    compiled(() => {
      const list = w.task("list", listAccounts, { region: "eu" });
      // @ts-expect-error the region is missing
      w.task("a", listAccounts, {});
      // @ts-expect-error it has no such field
      w.task("b", listAccounts, { region: "eu", mx: 3 });
      // @ts-expect-error a number is no text
      w.task("c", listAccounts, { region: 3 });
      // @ts-expect-error a list is no text
      w.task("d", listAccounts, { region: list.accounts });
      // @ts-expect-error it may be null
      w.task("e", listAccounts, { region: list.next });
      // @ts-expect-error the task takes no input
      w.task("f", tick, { a: 1 });
      const plan = list.accounts[0]!.plan;
      // @ts-expect-error what is left out of an output is null, not undefined
      w.task("h", planned, { plan });
      // @ts-expect-error after takes nodes, not their fields
      w.task("i", tick, undefined, { after: [list.accounts] });
      // @ts-expect-error there is no such option
      w.task("j", tick, undefined, { afterwards: [list] });
    });
  });

  test("follow the list for items", () => {
    compiled(() => {
      const list = w.task("list", listAccounts, { region: "eu" });
      const window = { window: 1 };
      // @ts-expect-error it is no list
      w.each("a", syncAccount, list.next, (account) => ({ account: { id: account } }), window);
      // @ts-expect-error an item is no text
      w.each("b", listAccounts, list.accounts, (account) => ({ region: account }), window);
      // @ts-expect-error an item has no such field
      w.each("c", listAccounts, list.accounts, (account) => ({ region: account.region }), window);
      // @ts-expect-error the window must be said
      w.each("d", syncAccount, list.accounts, (account) => ({ account }), {});
      const wrong = { window: 1, onError: "ignore" as const };
      // @ts-expect-error there is no such policy
      w.each("e", syncAccount, list.accounts, (account) => ({ account }), wrong);
    });
  });
});

describe("the types of workflow nodes", () => {
  test("allow null results of an each only with collect", () => {
    compiled(() => {
      const list = w.task("list", listAccounts, { region: "eu" });
      const input = (account: Ref<StoredAccount>) => ({ account });
      const fast = w.each("a", syncAccount, list.accounts, input, { window: 1 });
      expectTypeOf(fast.results).toExtend<Reference<readonly { rows: number }[]>>();
      const all = w.each("b", syncAccount, list.accounts, input, { window: 1, onError: "collect" });
      expectTypeOf(all.results).toExtend<Reference<readonly ({ rows: number } | null)[]>>();
      // @ts-expect-error a failed item is null
      expectTypeOf(all.results).toExtend<Reference<readonly { rows: number }[]>>();
      expectTypeOf(all.counts.failed).toEqualTypeOf<Ref<number>>();
      expectTypeOf(all.errors[0]!.error.message).toEqualTypeOf<Ref<string | null>>();
    });
  });

  test("allow null for the return value of a branch outside it", () => {
    compiled(() => {
      const list = w.task("list", listAccounts, { region: "eu" });
      const more = w.when("more", list.next, "exists", (b) => b.task("again", listAccounts, { region: "eu" }));
      expectTypeOf(more.yes).toExtend<Reference<object | null>>();
      expectTypeOf(more.no).toEqualTypeOf<undefined>();
      // @ts-expect-error nobody may have listed
      expectTypeOf(more.yes.accounts).toExtend<Reference<StoredAccount[]>>();
      w.when("b", list.next, { equals: "x" }, () => undefined);
      // @ts-expect-error it is text
      w.when("c", list.next, { equals: 5 }, () => undefined);
      // @ts-expect-error above takes a number
      w.when("d", list.next, { above: "a" }, () => undefined);
    });
  });

  test("allow null or an error for a node that is read with ended", () => {
    compiled(() => {
      const list = w.task("list", listAccounts, { region: "eu" });
      const over = w.ended(list);
      type List = { accounts: StoredAccount[]; next: string | null };
      expectTypeOf(over).not.toExtend<Reference<List>>();
      expectTypeOf(over).toExtend<Reference<object | { readonly error: Failure } | null>>();
      expectTypeOf(over.next).toEqualTypeOf<Ref<string | null>>();
      expectTypeOf(over.accounts).toEqualTypeOf<Ref<StoredAccount[] | null>>();
      expectTypeOf(over.error.message).toEqualTypeOf<Ref<string | null>>();
      // @ts-expect-error it may have failed: then there is no list
      w.each("a", syncAccount, over.accounts, (account) => ({ account }), { window: 1 });
      // @ts-expect-error it is no node
      w.task("b", tick, undefined, { after: [over] });
      const sync = w.each("sync", syncAccount, list.accounts, (account) => ({ account }), {
        window: 1,
      });
      const { results, errors, counts, error } = w.ended(sync);
      expectTypeOf(results).toEqualTypeOf<Ref<({ rows: number } | null)[] | null>>();
      expectTypeOf(errors[0]!.index).toEqualTypeOf<Ref<number | null>>();
      expectTypeOf(counts.failed).toEqualTypeOf<Ref<number | null>>();
      expectTypeOf(error).toEqualTypeOf<Ref<Failure | null>>();
      // @ts-expect-error some may be missing, or all
      w.task("c", report, { synced: results });
      expectTypeOf(w.ended(w.sleep("nap", 1)).error).toEqualTypeOf<Ref<Failure | null>>();
      expectTypeOf(w.ended(w.waitFor("any", "any")).error).toEqualTypeOf<Ref<Failure | null>>();
      const own = w.task("own", task("own", { output: type<{ error: number }>() }));
      expectTypeOf(w.ended(own).error).toExtend<Reference<number | Failure | null>>();
      // @ts-expect-error which of its nodes?
      w.ended(w.sequence("chain", (s) => s.task("one", tick)));
    });
  });

  test("cover events, failures and times", () => {
    compiled(() => {
      const approved = w.waitFor("approval", "approved", { schema: type<{ by: string }>() });
      expectTypeOf(approved.by).toEqualTypeOf<Ref<string>>();
      const unknown = w.waitFor("any", "any");
      expectTypeOf<typeof unknown>().toExtend<Reference<unknown>>();
      w.onFailure(approved, (_f, failure) => {
        expectTypeOf(failure).toExtend<Reference<Failure>>();
      });
      w.sleep("s", 5);
      w.sleep("t", { until: approved.by });
      // @ts-expect-error a number that only a run has could be either, so it must be said
      w.sleep("u", approved.by);
      const chain = w.sequence("chain", (s) => s.task("one", tick));
      // @ts-expect-error which of its nodes failed would have to be said
      w.onFailure(chain, () => undefined);
      w.task("two", tick, undefined, { after: [chain, { node: approved, on: "end" }] });
    });
  });
});

test("a workflow has the types of its input and its result", () => {
  const schema = z.object({ region: z.string().default("eu"), at: z.coerce.date() });
  const nightly = workflow("nightly", { input: schema }, (w, input) => {
    expectTypeOf(input.region).toEqualTypeOf<Ref<string>>();
    expectTypeOf(input.at).toEqualTypeOf<Ref<string>>();
    const list = w.task("list", listAccounts, { region: input.region });
    const sync = w.each("sync", syncAccount, list.accounts, (account) => ({ account }), {
      window: 3,
      onError: "collect",
    });
    const written = w.task("report", report, { synced: sync.results, since: input.at });
    return { written, failed: sync.counts.failed, version: 1, list: [list.next] };
  });
  type Output = { written: string; failed: number; version: number; list: (string | null)[] };
  expectTypeOf(nightly).toEqualTypeOf<Workflow<z.input<typeof schema>, Output>>();
  const alone = workflow("alone", {}, (w) => w.task("report", report, { synced: [] }));
  expectTypeOf(alone).toEqualTypeOf<Workflow<undefined, string>>();
  const silent = workflow("silent", {}, (w) => {
    w.task("tick", tick);
  });
  expectTypeOf(silent).toEqualTypeOf<Workflow<undefined, { readonly [node: string]: unknown }>>();
  expect(nightly.graph.nodes.map((node) => node.after)).toEqual([[], ["list"], ["sync"]]);
});

describe("the types of runs", () => {
  const client = null as unknown as Client;
  const nightly = workflow("nightly", { input: z.object({ n: z.number().default(1) }) }, (w) => {
    const written = w.task("report", report, { synced: [] });
    return { written };
  });
  const alone = workflow("alone", {}, (w) => w.task("report", report, { synced: [] }));

  test("take the input and the result of their workflow", () => {
    compiled(async () => {
      const run = await client.start(nightly, {}, { idempotencyKey: "k" });
      expectTypeOf(run).toEqualTypeOf<Run<{ written: string }>>();
      expectTypeOf(await run.result({ timeoutMs: 1 })).toEqualTypeOf<{ written: string }>();
      expectTypeOf(await client.start(alone)).toEqualTypeOf<Run<string>>();
      // @ts-expect-error n is a number
      await client.start(nightly, { n: "1" });
      // @ts-expect-error the input cannot be left out
      await client.start(nightly);
      // @ts-expect-error it takes none
      await client.start(alone, 7);
      // The compiler reports the error at its place and not at the workflow.
      await client.start(nightly, {
        // @ts-expect-error a field that there is not
        m: 1,
      });
      await client.start(nightly, {
        // @ts-expect-error n is a number
        n: "1",
      });
      await client.start(
        nightly,
        {},
        {
          // @ts-expect-error a mistyped option
          idempotencykey: "k",
        },
      );
      await client.start(
        "nightly",
        {},
        {
          // @ts-expect-error also by name
          idempotencykey: "k",
        },
      );
      // @ts-expect-error there is no such option
      await client.start(alone, undefined, { delayMs: 1 });
    });
  });

  test("use a given definition for runs that were started elsewhere", () => {
    compiled(async () => {
      expectTypeOf(client.run("1")).toEqualTypeOf<Run>();
      expectTypeOf(client.run("1", nightly)).toEqualTypeOf<Run<{ written: string }>>();
      expectTypeOf(await client.start("nightly", { any: 1 })).toEqualTypeOf<Run>();
    });
  });
});
