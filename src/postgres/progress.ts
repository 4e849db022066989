import type { Claim } from "../core/claim.js";
import type { Database } from "./database.js";
import { statement } from "./statement.js";

/** The progress of one execution. data: JSON text, '' for none. */
export interface ProgressReport {
  readonly claim: Claim;
  readonly fraction: number;
  readonly data: string;
}

const RECORD = "\u001e";

const reportStatement = statement<{ done: unknown }>({
  name: "report_progress",
  text: `select sluice.report_progress($1::text::bigint[], $2::text::bigint[], $3::text::real[], $4) as done`,
  params: ["text", "text", "text", "text"],
  columns: ["done"],
});

/** Stores the latest progress of these executions. Executions that have lost their task change nothing. */
export async function reportProgress(db: Database, reports: readonly ProgressReport[]): Promise<void> {
  const list = (of: (report: ProgressReport) => string | number): string => `{${reports.map(of).join(",")}}`;
  await db.run(reportStatement, [
    list(({ claim }) => claim.id),
    list(({ claim }) => claim.token),
    list(({ fraction }) => fraction),
    reports.map(({ data }) => data).join(RECORD),
  ]);
}
