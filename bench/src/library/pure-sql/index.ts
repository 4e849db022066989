import type { Library, Shape, Variant } from "../../adapter.js";
import { adapterOf } from "../sluice/adapter.js";
import { ownVersion } from "../version.js";
import { consume, type Loops } from "./loop.js";

/**
 * What our own statements can do if nobody has to run a task: a bare loop that settles what it claimed
 * before and claims the next. No handlers, no heartbeat, no keeper.
 */
export const pureSql: Library = {
  name: "pure-sql",
  version: ownVersion(),
  store: "postgres",
  variants: [
    variant("one connection", { connections: 1, keepHistory: false }),
    variant("two connections", { connections: 2, keepHistory: false }),
    variant("two connections, history on", { connections: 2, keepHistory: true }),
  ],
};

function variant(name: string, loops: Loops): Variant {
  const ours = adapterOf({ ...loops, numbers: {} });
  return {
    name,
    config: `a loop over the worker's own statement on ${name}: settle the last 500, claim the next 500`,
    cannot: (shape: Shape) => (shape.scene === undefined ? null : "it has no scenes"),
    adapter: { ...ours, consume: (url, consumption) => consume(loops, url, consumption) },
    fills: "sluice",
  };
}
