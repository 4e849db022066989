import { backlog, graphileBacklog } from "../backlog.js";
import { drainGraphile, drainSluice } from "../drained.js";
import { GRAPHILE_CONFIG, SLUICE_CONFIG } from "../subjects.js";
import type { Bench, Sample, Workload } from "../workload.js";

/** A backlog of no-ops, from one and from two processes. */
export const drains: readonly Workload[] = [1, 2].map((processes) => ({
  name: `drain-${processes}`,
  about: `a backlog of no-ops drained by ${processes === 1 ? "one process" : "two processes"}`,
  unit: "tasks/s",
  base: { subject: "graphile-worker" },
  subjects: [
    {
      name: "sluice, history on",
      config: SLUICE_CONFIG,
      measure: (bench) => ours(bench, processes, true),
    },
    {
      name: "sluice, history off",
      config: `${SLUICE_CONFIG}; nothing is kept of a success, as graphile-worker does`,
      measure: (bench) => ours(bench, processes, false),
    },
    {
      name: "graphile-worker",
      config: GRAPHILE_CONFIG,
      measure: (bench) => {
        const total = bench.sizes.drain;
        return drainGraphile(bench, { recipe: graphileBacklog(total), total, processes });
      },
    },
  ],
}));

function ours(bench: Bench, processes: number, keepHistory: boolean): Promise<Sample> {
  const total = bench.sizes.drain;
  const recipe = backlog("plain", total);
  return drainSluice(bench, { recipe, kit: "plain", total, processes, keepHistory });
}
