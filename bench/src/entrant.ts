import type { Library, Shape, Variant } from "./adapter.js";
import type { Recipe } from "./databases.js";
import type { Keys } from "./inputs.js";
import { enqueueIn } from "./once.js";
import type { Who } from "./result.js";
import type { Entrant } from "./workload.js";

// Beyond this a list would be long, and the filling no faster.
const FILL_IN_FLIGHT = 4;

export function whoIs({ library, variant }: Entrant, name?: string): Who {
  return {
    name: name ?? `${library.name}, ${variant.name}`,
    library: library.name,
    variant: variant.name,
    config: variant.config,
    version: library.version,
    store: library.store,
  };
}

/** What is waiting before a measurement begins. */
export interface Backlog {
  readonly shape: Shape;
  readonly keys: Keys | null;
  readonly tasks: number;
}

/** Filled by a process of its own, with the library's own call. */
export function recipeOf({ library, variant }: Entrant, backlog: Backlog): Recipe {
  const { shape, keys, tasks } = backlog;
  return {
    name: `${variant.fills ?? `${library.name} ${variant.name}`} ${JSON.stringify(backlog)}`,
    async fill(url) {
      const one = shape.ordered === true || shape.scene !== undefined;
      const job = { kind: "fill", count: tasks, inFlight: one ? 1 : FILL_IN_FLIGHT } as const;
      const who = { library: library.name, variant: variant.name };
      await enqueueIn({ url, ...who, shape, keys, install: true, job });
    },
  };
}

export function entrantsOf(library: Library, names: readonly string[]): Entrant[] {
  return library.variants
    .filter((variant: Variant) => names.includes(variant.name))
    .map((variant) => ({ library, variant }));
}
