import type { Call } from "./calls.js";
import { explained, pagesOf, planOf, type Explained, type PlanNode } from "./explain.js";
import { faultsOf, type Bounds } from "./findings.js";
import type { PlanSession } from "./session.js";

/** What the plans of one call show. */
export interface Look {
  readonly pages: number;
  /** How many statements the call consists of, its own included. */
  readonly statements: number;
  readonly faults: readonly string[];
  /** The plans as people read them: one of each kind, with how many there were. */
  readonly text: string;
}

/** Looks at a call twice: once for us, once for people. */
export async function look(session: PlanSession, call: Call, bounds: Bounds): Promise<Look> {
  const plans = await plansOf(session, call, "json");
  const [own] = plans.filter(({ where }) => where === "").map(planOf);
  if (own === undefined) throw new Error("auto_explain logged no plan of the call");
  const pages = pagesOf(own);
  const faults = plans.flatMap((plan) => faultsIn(plan, bounds));
  if (pages > bounds.pages) faults.push(`it reads ${pages} pages, most of them in ${placeOf(widest(plans))}`);
  const text = grouped(await plansOf(session, call, "text"));
  return { pages, statements: plans.length, faults: [...new Set(faults)], text };
}

/** The statement that looks at most pages by itself: one that only calls others has no tables. */
function widest(plans: readonly Explained[]): Explained {
  const own = plans.filter((plan) => readsTables(planOf(plan)));
  return own.reduce((a, b) => (pagesOf(planOf(b)) > pagesOf(planOf(a)) ? b : a), own[0] ?? plans[0]!);
}

function readsTables(node: PlanNode): boolean {
  return node["Relation Name"] !== undefined || (node.Plans ?? []).some(readsTables);
}

function faultsIn(plan: Explained, bounds: Bounds): string[] {
  const place = placeOf(plan);
  return faultsOf(planOf(plan), bounds).map((f) => (place === "" ? f : `${place}: ${f}`));
}

/** "sluice.sources line 12"; empty for the call itself. */
function placeOf({ where }: Explained): string {
  const [, name, line] = /^PL\/pgSQL function ([\w.]+)\(.*?\) (line \d+)/.exec(where) ?? [];
  return name === undefined ? where : `${name} ${line}`;
}

function plansOf(session: PlanSession, call: Call, format: "text" | "json"): Promise<Explained[]> {
  return session.undone(async () => {
    const ask = await call.prepare(session);
    return explained(session.client, format, () => session.step(ask));
  });
}

/** A function that is called for each row would else fill the file with the same plan. */
function grouped(plans: readonly Explained[]): string {
  const groups = new Map<string, Explained[]>();
  for (const plan of plans) {
    const kind = `${plan.where}\n${queryOf(plan.text)}`;
    groups.set(kind, [...(groups.get(kind) ?? []), plan]);
  }
  return [...groups.values()].map(groupText).join("\n");
}

function queryOf(text: string): string {
  return text.split("\n").find((line) => line.startsWith("Query Text:")) ?? "";
}

function groupText(plans: readonly Explained[]): string {
  const longest = plans.reduce((a, b) => (b.ms > a.ms ? b : a));
  const total = plans.reduce((sum, { ms }) => sum + ms, 0);
  const where = placeOf(longest) || "the call itself";
  const times =
    plans.length === 1
      ? `${longest.ms} ms`
      : `${plans.length} times, ${total.toFixed(3)} ms together; the longest, ${longest.ms} ms`;
  return `-- ${where}: ${times}\n${longest.text.trimEnd()}\n`;
}
