import { limit, task, type, type TaskContract, type TaskOptions } from "../../src/index.js";

/** The same small input for everyone. */
export interface Input {
  readonly n: number;
  readonly key?: string;
  /** When it was enqueued. */
  readonly atMs?: number;
}

/** What a handler does. */
export type Work = "nothing" | "hang" | "latency" | { readonly sleepMs: number };

/** A type of task as a worker process serves it. Only counted ones are timed. */
export interface Piece {
  readonly contract: TaskContract<Input, Input>;
  readonly work: Work;
  readonly counted: boolean;
}

type Options = Pick<
  TaskOptions<ReturnType<typeof type<Input>>, never>,
  "limits" | "order" | "concurrency"
>;

const TYPES = 100;
// More slots than permits in any of these processes: it is counted, and never full.
const NEVER_BINDS = 1_000_000;

/** What a worker process serves, by name: the contract must be the same where tasks are enqueued. */
export const kits = {
  plain: () => [counted("plain")],
  neverBinds: () => [counted("plain", { limits: [limit("never-binds", { total: NEVER_BINDS })] })],
  ownNeverBinds: () => [counted("plain", { concurrency: NEVER_BINDS })],
  limit500: () => [counted("plain", { limits: [limit("five-hundred", { total: 500 })] })],
  limit10: () => [counted("sleeper", { limits: [limit("ten", { total: 10 })] }, { sleepMs: 5 })],
  order: () => [counted("ordered", { order: (input) => input.key! })],
  types: () => typesWith({}),
  typesOneLimited: () => typesWith({ concurrency: 10 }),
  blocked: () => [
    counted("plain"),
    {
      ...counted("blocked", { limits: [limit("full", { total: 1 })] }, "hang"),
      counted: false,
    },
  ],
  unserved: () => [counted("plain")],
  sleep50: () => [counted("sleeper", {}, { sleepMs: 50 })],
  hang: () => [counted("hanger", {}, "hang")],
  latency: () => [counted("plain", {}, "latency")],
} satisfies Record<string, () => readonly Piece[]>;

export type KitName = keyof typeof kits;

/** A type that no kit serves. */
export const nobodys = counted("nobodys").contract;

/** n from 0; with keys, each key in turn. */
export function* inputs(count: number, keys = 0): Generator<Input> {
  for (let n = 0; n < count; n++) yield keys === 0 ? { n } : { n, key: `key-${n % keys}` };
}

function counted(name: string, options: Options = {}, work: Work = "nothing"): Piece {
  const contract = task(name, { input: type<Input>(), ...options });
  return { contract, work, counted: true };
}

/** The first one has the options; the other 99 are what is timed. */
function typesWith(options: Options): readonly Piece[] {
  const first = { ...counted("type-0", options), counted: false };
  const others = Array.from({ length: TYPES - 1 }, (_, i) => counted(`type-${i + 1}`));
  return [first, ...others];
}
