import type { Recipe } from "./databases.js";
import { fillGraphile, fillTask, withSluice } from "./fill.js";
import { kits, type KitName } from "./tasks.js";

/** A backlog of one kit's first type. */
export function backlog(kit: KitName, count: number): Recipe {
  return {
    name: `${kit} ${count}`,
    fill: (url) => withSluice(url, (sluice) => fillTask(sluice, kits[kit]()[0]!.contract, count)),
  };
}

export function graphileBacklog(count: number): Recipe {
  return { name: `graphile ${count}`, fill: (url) => fillGraphile(url, count) };
}
