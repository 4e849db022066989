import { limit, task, type, workflow } from "../../../src/index.js";

/** The configuration of a process of these tests. */
export interface FlowConfig {
  readonly url: string;
  readonly name: string;
  readonly types: readonly ("link" | "item" | "parent")[];
  /** The first links of chains wait until this many have started in all processes. */
  readonly meet?: number;
  /** Items from this number on hang forever. */
  readonly hangFrom?: number;
  readonly leaseMs?: number;
}

const once = { attempts: 1 };

/** One link of a chain. */
export const link = task("link", {
  input: type<{ flow: number; at: number }>(),
  retry: once,
});

const perUser = limit("per-user", { perKey: 5 });

/** One of many, with a key and an order of its own. */
export const item = task("item", {
  input: type<{ flow: number; at: number }>(),
  output: type<number>(),
  limits: [{ limit: perUser, key: ({ at }) => `user ${at % 100}` }],
  order: ({ at }) => `item ${at % 1_000}`,
  retry: once,
});

/** A handler with a map of this many items, with or without hold. */
export const parent = task("parent", {
  input: type<{ flow: number; items: number; hold: boolean }>(),
  output: type<number>(),
});

export const LINKS = 10;

/** Ten that run one after the other. */
export const chain = workflow("chain", { input: type<{ flow: number }>() }, (w, { flow }) => {
  w.sequence("links", (s) => {
    for (let at = 0; at < LINKS; at++) s.task(`link ${at}`, link, { flow, at });
  });
});

/** A list of numbers through a window. */
export const fan = workflow(
  "fan",
  { input: type<{ flow: number; items: readonly number[] }>() },
  (w, { flow, items }) => {
    const each = w.each("each", item, items, (at) => ({ flow, at }), { window: 3 });
    return { results: each.results, counts: each.counts };
  },
);

/** Where handlers write down what they begin and end. */
export const CREATE_SEEN = `create table seen (n bigint generated always as identity primary key, process text not null,
  what text not null, flow int not null, at int not null, kind text not null)`;
