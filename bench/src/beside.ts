import { backlog } from "./backlog.js";
import { drainSluice, type Drain } from "./drained.js";
import { SLUICE_CONFIG } from "./subjects.js";
import type { KitName } from "./tasks.js";
import type { Bench, Subject } from "./workload.js";

export const UNLIMITED = "unlimited";

/** The plain drain that the others are compared to, measured beside each of them. */
export const unlimited: Subject = drainOf(UNLIMITED, "plain");

/** A drain of a kit's first type by one process. */
export function drainOf(
  name: string,
  kit: KitName,
  more?: (bench: Bench) => Partial<Drain>,
): Subject {
  return {
    name,
    config: SLUICE_CONFIG,
    measure(bench) {
      const total = bench.sizes.drain;
      const drain = { recipe: backlog(kit, total), kit, total };
      return drainSluice(bench, { ...drain, ...more?.(bench) });
    },
  };
}
