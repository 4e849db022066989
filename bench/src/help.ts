import type { Workload } from "./workload.js";

/** The page that --help prints. */
export function helpText(workloads: readonly Workload[]): string {
  const width = Math.max(...workloads.map((w) => w.name.length));
  const list = workloads.map((w) => `  ${w.name.padEnd(width)}  ${w.about}`);
  return `npm run bench -- <command> [options]

Commands:
  drain     measure every workload and print a table
  accept    measure the workloads that have a target, compare, and exit 1 on a miss

Options:
  --quick         smaller sizes and one repetition: shows that it works, its numbers prove nothing
  --only NAMES    only these workloads, separated by commas
  --reps N        repetitions of every subject, interleaved (3; with --quick 1)
  --json          a line of JSON per subject instead of the table
  --url URL       use this server instead of starting one; databases are made and dropped there
  --worker LIST   numbers of our worker, e.g. claimBatchSize=100,claimLoops=2
  --profile DIR   worker processes leave CPU profiles here (numbers are then of little worth)
  --help

Workloads:
${list.join("\n")}
`;
}
