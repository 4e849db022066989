import type pg from "pg";

/** A node of a plan, as PostgreSQL's JSON has it. */
export interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Actual Rows"?: number;
  readonly "Actual Loops"?: number;
  readonly Plans?: readonly PlanNode[];
  readonly [more: string]: unknown;
}

/** What one statement did, be it the call itself or one inside its functions. */
export interface Explained {
  readonly ms: number;
  /** The line of the function it stands in; empty for the call itself. */
  readonly where: string;
  readonly text: string;
}

/** Loads auto_explain into a session. Returns why it cannot, or null. */
export async function loadAutoExplain(client: pg.Client): Promise<string | null> {
  try {
    await client.query("load 'auto_explain'");
  } catch (e) {
    return (e as Error).message;
  }
  for (const [name, value] of Object.entries(SETTINGS)) await client.query(`set auto_explain.${name} = ${value}`);
  return null;
}

// As notices the plans come to this session, and stay out of the server's log.
const SETTINGS = {
  log_level: "notice",
  log_nested_statements: "on",
  log_analyze: "on",
  log_buffers: "on",
  log_min_duration: "-1",
};

/** Runs the work and returns the plans of all its statements, in the order in which they ended. */
export async function explained(
  client: pg.Client,
  format: "text" | "json",
  work: () => Promise<unknown>,
): Promise<Explained[]> {
  const found: Explained[] = [];
  const listen = (notice: { message?: string; where?: string | undefined }): void => {
    const [, ms, text] = /^duration: ([\d.]+) ms {2}plan:\n([\s\S]*)/.exec(notice.message ?? "") ?? [];
    if (text !== undefined) found.push({ ms: Number(ms), where: placeOf(notice.where), text });
  };
  await client.query(`set auto_explain.log_format = ${format}`);
  client.on("notice", listen);
  try {
    await client.query("set auto_explain.log_min_duration = 0");
    await work();
  } finally {
    await client.query("set auto_explain.log_min_duration = -1");
    client.off("notice", listen);
  }
  return found;
}

/** Whoever called the function is told by other plans. */
function placeOf(where: string | undefined): string {
  return where?.split("\n").find((line) => line.startsWith("PL/pgSQL function")) ?? "";
}

export function planOf(explained: Explained): PlanNode {
  return (JSON.parse(explained.text) as { Plan: PlanNode }).Plan;
}

/** Pages that a statement looks at, with all that its functions do. */
export function pagesOf(plan: PlanNode): number {
  return Number(plan["Shared Hit Blocks"] ?? 0) + Number(plan["Shared Read Blocks"] ?? 0);
}
