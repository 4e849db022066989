import type { Recipe } from "../databases.js";
import { withSluice } from "../fill.js";
import { runOnce } from "../once.js";
import type { Bench, Sample, Workload } from "../workload.js";
import { graphileBacklog } from "../backlog.js";

const EMPTY: Recipe = { name: "empty", fill: (url) => withSluice(url, async () => {}) };

/** Bulk enqueue by one producer. */
export const enqueue: Workload = {
  name: "enqueue",
  about: "a list of tasks enqueued by one producer, one call in flight",
  unit: "tasks/s",
  base: { subject: "graphile-worker addJobs" },
  subjects: [
    {
      name: "sluice enqueueMany",
      config: "one call for the whole list, which it sends in chunks of 1,000",
      measure: (bench) => measure(bench, "enqueue-sluice", EMPTY),
    },
    {
      name: "graphile-worker addJobs",
      config: "calls of 1,000 jobs: as large as our chunks; calls of 5,000 are no faster",
      measure: (bench) => measure(bench, "enqueue-graphile", graphileBacklog(0)),
    },
  ],
};

async function measure(
  { databases, sizes, profile }: Bench,
  file: "enqueue-sluice" | "enqueue-graphile",
  recipe: Recipe,
): Promise<Sample> {
  const copy = await databases.copyOf(recipe);
  try {
    const { ms } = await runOnce(file, { url: copy.url, count: sizes.enqueue }, profile);
    return { value: (sizes.enqueue * 1_000) / ms };
  } finally {
    await copy.drop();
  }
}
