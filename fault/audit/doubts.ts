import type { Report } from "./report.js";

// Seen on two cores under a load of 5 to 10: runs of all faults, two of them at once, lost no lease by
// themselves, and 4 to 13 % of their handlers were in doubt; with `freeze` alone 9 %. An engine that gives
// tasks away after a fifth of their lease lost 15 leases, and left 62 % in doubt.
const LEASES_LOST_MAX = 3;
const DOUBTFUL_SHARE_MAX = 0.3;

/**
 * What is in doubt is held against nobody. So a worker that loses its lease again and again without a
 * cause would not only be wrong itself, but hide what else is: then the run says too little to be green.
 * A start in doubt is a run in doubt as well, and counts once.
 */
export function tooDoubtful({ leasesLost, doubtful, runs }: Report): string[] {
  const share = doubtful.runs / Math.max(1, runs);
  const said: string[] = [];
  if (leasesLost > LEASES_LOST_MAX)
    said.push(`${leasesLost} leases were lost although nothing disturbed their workers`);
  if (share > DOUBTFUL_SHARE_MAX)
    said.push(
      `${Math.round(share * 100)} % is in doubt: ${doubtful.runs} runs and ${doubtful.starts} starts of ${runs}`,
    );
  return said;
}
