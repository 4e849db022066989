import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
import { expect, test } from "vitest";
import { task, type, type TaskContext } from "../../src/index.js";
import { scene } from "../flow/scene.js";

const storage = new AsyncLocalStorage<string>();

/** A promise of a library's own, such as a query builder: it calls back in the context in which it was made. */
function thenable(): PromiseLike<void> {
  const here = AsyncResource.bind((call: () => void) => call());
  return {
    // oxlint-disable-next-line unicorn/no-thenable -- this is what some libraries return
    then: (done) => void setTimeout(() => here(() => void done?.()), 5) as never,
  };
}

const endings: Record<string, (ctx: TaskContext) => unknown> = {
  "in a transaction": (ctx) => ctx.transaction(async () => {}),
  "with an enqueue": (ctx) => ctx.enqueue(task("other")),
  "by a promise": () => new Promise((resolve) => setTimeout(resolve, 5)),
  "by something like a promise": thenable,
  "at once": () => {},
};

// What a handler traces, logs or looks up by its context would else show up in another's, of another tenant.
test.each(Object.keys(endings))(
  "the asynchronous context of a handler that ends %s does not leak into the next handler",
  async (how) => {
    const s = await scene();
    const job = task("job", { input: type<string>() });
    const found: (string | undefined)[] = [];
    await s.worker({
      maxConcurrentTasks: 1,
      handlers: [
        job.handle((name, ctx) => {
          found.push(storage.getStore());
          return storage.run(name, () => endings[how]!(ctx));
        }),
      ],
    });
    const handles = [];
    for (const name of ["a", "b", "c", "d"]) handles.push(await s.sluice.enqueue(job, name));
    for (const handle of handles) await handle.result();
    expect(found).toEqual([undefined, undefined, undefined, undefined]);
  },
);
