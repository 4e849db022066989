// Figures about much: a long backlog, large payloads.
import type { Figure } from "./figure.js";
import { payloadFigures } from "./payloads.js";
import { snapshotFigures } from "./snapshot.js";

const P99_RATIO_MAX = 3;

export const heavyFigures: readonly Figure[] = [
  {
    name: "snapshot",
    target: "a million tasks queued and a snapshot held for a minute: claim p99 at most 3x without it",
    measure: async (tell) => {
      const { calmMs, heldMs, tasksPerSecond, deadRows } = await snapshotFigures(tell);
      const rows = deadRows.toLocaleString("en-US");
      return {
        ok: heldMs.p99 <= P99_RATIO_MAX * calmMs.p99,
        seen: `p99 ${heldMs.p99} ms against ${calmMs.p99} ms (p50 ${heldMs.p50} against ${calmMs.p50}), ${tasksPerSecond.held} tasks/s against ${tasksPerSecond.calm}, ${rows} dead rows at the end`,
        command: "npm run figures -- snapshot",
      };
    },
  },
  {
    name: "payloads",
    target: "1 GB of queued payloads, worked off by a worker with a heap of 256 MB",
    measure: async (tell) => {
      const { gigabytes, tasks, done, rssMbMax, inFlightMax } = await payloadFigures(tell);
      return {
        ok: done === tasks,
        seen: `${done} of ${tasks} tasks, ${gigabytes} GB; at most ${inFlightMax} in flight, ${rssMbMax} MB RSS`,
        command: "npm run figures -- payloads",
      };
    },
  },
];
