// Task types, limits and workflows that every package can create with its public API.
import type * as source from "../../../src/index.js";

export type Package = typeof source;

/** The package under this address: the source, or an unpacked tarball. */
export async function load(address: string): Promise<Package> {
  return (await import(address)) as Package;
}

interface Input {
  readonly key: string;
  readonly n: number;
}

export type World = ReturnType<typeof worldOf>;

export const TENANT_MAX = 2;
export const SHARED_MAX = 3;
export const ALONE_MAX = 1;

export function worldOf({ fixed, limit, task, type, workflow }: Package) {
  const input = type<Input>();
  const output = type<number>();
  const tenant = limit("tenant", { perKey: TENANT_MAX });
  const shared = limit("shared", { total: SHARED_MAX });
  const limits = [{ limit: tenant, key: (i: Input) => i.key }, shared];
  const once = { attempts: 1 };
  const tasks = {
    plain: task("plain", { input, output }),
    ordered: task("ordered", { input, output, order: (i: Input) => i.key }),
    keyed: task("keyed", { input, output, limits }),
    alone: task("alone", { input, output, concurrency: ALONE_MAX }),
    flaky: task("flaky", { input, output, retry: { attempts: 5, backoff: fixed(5_000) } }),
    failing: task("failing", { input, output, retry: once }),
    blocking: task("blocking", {
      input,
      output,
      retry: once,
      order: { key: (i: Input) => i.key, scope: "blocking", onFailure: "block" },
    }),
    poison: task("poison", { input, output }),
    unserved: task("unserved", { input, output, limits: [{ limit: tenant, key: (i: Input) => i.key }] }),
    held: task("held", { input, output, queue: "held" }),
    list: task("list", { input, output: type<{ items: number[] }>() }),
    item: task("item", { input: type<{ n: number }>(), output }),
    sum: task("sum", { input: type<{ parts: number[] }>(), output }),
    mapper: task("mapper", { input, output }),
  };
  const fan = workflow("fan", { input }, (w, i) => {
    const list = w.task("list", tasks.list, { key: i.key, n: i.n });
    const items = w.each("items", tasks.item, list.items, (n) => ({ n }), { window: 2 });
    return { total: w.task("sum", tasks.sum, { parts: items.results }) };
  });
  const approve = workflow("approve", { input }, (w) => {
    const part = w.waitFor("wait", "approved", { schema: type<number>() });
    return { total: w.task("sum", tasks.sum, { parts: [part] }) };
  });
  return { tasks, limits: { tenant, shared }, workflows: { fan, approve } };
}

export type Name = keyof World["tasks"];
