import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import type { TaskContext, TaskHandler } from "../../../src/index.js";
import type { Name, World } from "./world.js";

/** Handlers write one row per success, in the transaction that completes the task. */
export const EFFECTS = `create table effect (
  task bigint not null, type text not null, key text, n int, process text not null,
  began timestamptz not null, ended timestamptz not null)`;

const APPEND = "insert into effect values ($1, $2, $3, $4, $5, $6, clock_timestamp())";
export const ITEMS = [1, 2, 3, 4, 5, 6];
export const TOTAL = ITEMS.reduce((sum, n) => sum + n, 0);

interface Given {
  readonly key?: string;
  readonly n?: number;
  readonly parts?: readonly number[];
}

/** Handlers that do the work of these types. */
export function working(world: World, names: readonly Name[], pool: pg.Pool, process: string): TaskHandler[] {
  const { item } = world.tasks;
  const work = async (given: Given, ctx: TaskContext): Promise<unknown> => {
    const { rows } = await pool.query<{ now: Date }>("select clock_timestamp()::text as now");
    if (ctx.type === "mapper")
      await ctx.map(
        "parts",
        ITEMS.map((n) => ({ n })),
        item,
        { window: 2 },
      );
    await sleep(5 + Math.random() * 10);
    const values = [ctx.id, ctx.type, given.key ?? null, given.n ?? null, process, rows[0]!.now];
    return ctx.transaction(async (tx) => {
      await tx.query(APPEND, values);
      if (ctx.type === "list") return { items: ITEMS };
      return given.parts === undefined ? (given.n ?? 0) : given.parts.reduce((sum, n) => sum + n, 0);
    });
  };
  return handlersOf(world, names, work);
}

/** Handlers that never end and report their start. */
export function hanging(world: World, names: readonly Name[]): TaskHandler[] {
  return handlersOf(world, names, (_, ctx) => {
    console.log(`began ${ctx.type}`);
    return new Promise(() => {});
  });
}

export function refusing(world: World, names: readonly Name[]): TaskHandler[] {
  return handlersOf(world, names, () => Promise.reject(new Error("refused")));
}

function handlersOf(
  { tasks }: World,
  names: readonly Name[],
  fn: (given: Given, ctx: TaskContext) => Promise<unknown>,
): TaskHandler[] {
  return names.map((name) => tasks[name].handle(fn as never));
}
