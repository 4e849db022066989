import { expect, onTestFinished } from "vitest";
import { silentLogger } from "../../src/core/ports.js";
import { task, type, workflow, type TaskHandler } from "../../src/index.js";
import { scene, until, type Scene } from "../flow/scene.js";
import { violations } from "../support/audit.js";

/** The tasks that tests of runs use. None has keys. */
export const work = task("work", {
  input: type<{ item: number }>(),
  output: type<number>(),
  retry: { attempts: 1 },
});
export const after = task("after", {
  input: type<unknown>(),
  output: type<unknown>(),
  retry: { attempts: 1 },
});

/** A fan-out with a window, then one task with all its results. */
export function fanOut(window: number, onError: "failFast" | "finish" | "collect" = "failFast") {
  return workflow("fan-out", { input: type<{ items: number[] }>() }, (w, input) => {
    const each = w.each("each", work, input.items, (item) => ({ item }), { window, onError });
    const last = w.task("last", after, { results: each.results, counts: each.counts });
    return { last, counts: each.counts };
  });
}

export const numbers = (length: number): number[] => Array.from({ length }, (_, i) => i);

export const sorted = (list: readonly number[]): number[] => list.toSorted((a, b) => a - b);

/** A scene whose database must have no violation at the end of the test. */
export async function workflowScene(): Promise<Scene> {
  const s = await scene({ logger: silentLogger });
  onTestFinished(async () => expect(await violations(s.sql)).toEqual([]));
  return s;
}

/** A handler whose executions end only when the test says so. */
export class Hands {
  /** Items in the order of their starts. */
  readonly began: number[] = [];
  readonly active = new Map<number, { end(): void; fail(): void }>();
  peak = 0;
  #open = false;
  #aborts: Promise<void> = Promise.resolve();

  readonly handler = work.handle(
    ({ item }, ctx) =>
      new Promise<number>((resolve, reject) => {
        this.began.push(item);
        const gone = (): void => void this.active.delete(item);
        this.active.set(item, {
          end: () => (gone(), resolve(item * 10)),
          fail: () => (gone(), reject(new Error(`no ${item}`))),
        });
        this.peak = Math.max(this.peak, this.active.size);
        if (this.#open) this.active.get(item)!.end();
        ctx.signal.addEventListener("abort", () => {
          void this.#aborts.then(() => (gone(), reject(ctx.signal.reason as Error)));
        });
      }),
  ) as TaskHandler;

  /** Waits until exactly this many run. */
  async full(count: number): Promise<void> {
    await until(`${count} items to run`, () => this.active.size === count);
  }

  /** Aborted items continue until the returned function is called. */
  holdAborts(): () => void {
    let release = (): void => {};
    this.#aborts = new Promise((resolve) => (release = resolve));
    return release;
  }

  /** From now on all items end immediately. */
  letGo(): void {
    this.#open = true;
    while (this.active.size > 0) this.endOldest();
  }

  /** Ends the item that started first. */
  endOldest(): void {
    const [oldest] = this.active.values();
    oldest!.end();
  }
}

/** A handler that records its inputs and returns them. */
export function listener(): { readonly heard: unknown[]; readonly handler: TaskHandler } {
  const heard: unknown[] = [];
  const handler = after.handle(async (input) => {
    heard.push(input);
    return input;
  });
  return { heard, handler };
}

export async function rowsOf<Row>(s: Scene, text: string, params: unknown[] = []): Promise<Row[]> {
  return (await s.sql.query(text, params)).rows as Row[];
}
