import type { Library } from "./adapter.js";
import type { Entrant } from "./workload.js";

/** Who may take part. */
export interface Cast {
  /** Our own in this variant. */
  sluice(
    variant:
      | "history on"
      | "history off"
      | "default"
      | "metrics off"
      | "metrics read"
      | `preset ${"high" | "io" | "throughput"}`,
  ): Entrant;
  /** What bounds us; which: all its variants, or the one that is nearest to a worker. */
  pureSql(which: "all" | "one"): readonly Entrant[];
  /** Every peer; which: all variants, or the best tuned, and further ones of this name. */
  peers(which: "all" | "tuned", further?: string): readonly Entrant[];
}

const OURS = ["sluice", "pure-sql"];
const WORKER_LIKE = "two connections";

export function castOf(libraries: readonly Library[]): Cast {
  const all = libraries.flatMap((library) => library.variants.map((variant) => ({ library, variant })));
  const of = (name: string): Entrant[] => all.filter(({ library }) => library.name === name);
  const peers = all.filter(({ library }) => !OURS.includes(library.name));
  return {
    sluice: (name) => of("sluice").find(({ variant }) => variant.name === name)!,
    pureSql: (which) => of("pure-sql").filter(({ variant }) => which === "all" || variant.name === WORKER_LIKE),
    peers: (which, further) =>
      peers.filter(({ variant }) => which === "all" || ["tuned", further].includes(variant.name)),
  };
}
