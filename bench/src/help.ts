import type { Workload } from "./workload.js";

/** The page that --help prints. */
export function helpText(workloads: readonly Workload[]): string {
  const width = Math.max(...workloads.map((w) => w.name.length));
  const list = workloads.map((w) => `  ${w.name.padEnd(width)}  ${w.about}`);
  const subjects = new Set(workloads.flatMap((w) => w.subjects.map(({ who }) => who.name)));
  return `npm run bench -- [command] [options]

Commands:
  run       measure every workload and print a table; the default
  accept    measure the workloads that have a target, compare, and exit 1 on a miss
  plans     save the query plans of claims at a million pending in --out; exit 1 on a bad one

Options:
  --quick           half a second and one repetition: only shows that the bench works
  --seconds N       duration of a measurement (3; with --quick 0.5)
  --reps N          repetitions of every subject, interleaved (3; with --quick 1)
  --only NAMES      only these workloads, separated by commas
  --subjects NAMES  only subjects whose names contain one of these, separated by commas
  --out DIR         write a report and the query plans to this folder
  --json            a line of JSON per subject instead of the table
  --url URL         use this server instead of starting one; databases are created and dropped there
  --worker LIST     settings of the Sluice worker, e.g. claimBatchSize=100,claimLoops=2
  --profile DIR     write CPU profiles of the processes here (which distorts the numbers)
  --help

Workloads:
${list.join("\n")}

Subjects:
  ${[...subjects].join("; ")}
`;
}
