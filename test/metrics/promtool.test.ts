// Checks a real scrape and the alert rules with Prometheus' own tool.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { cancel, limit, task, type } from "../../src/index.js";
import { catalogue } from "../../src/metrics/catalogue.js";
import { ended, scene, until } from "../flow/scene.js";

const pathOf = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** The output of promtool and whether it passed. */
function promtool(args: readonly string[], input = ""): { code: number | null; said: string } {
  const { status, stdout, stderr } = spawnSync("promtool", args, { input, encoding: "utf8" });
  return { code: status, said: `${stdout}${stderr}`.trim() };
}

const installed = promtool(["--version"]).code === 0;

test("promtool is installed wherever it is required", () => {
  expect(
    installed || process.env["CI"] === undefined,
    "CI needs promtool: apt-get install --no-install-recommends prometheus",
  ).toBe(true);
});

describe.skipIf(!installed)("promtool", () => {
  test("accepts the scrape of a worker that has run tasks", async () => {
    const s = await scene();
    const mail = limit("mail", { total: 5 });
    const odd = 'an "odd" \\ name\u00e9';
    const job = task(odd, { input: type<number>(), limits: [mail], retry: { attempts: 1 } });
    const handler = job.handle((n) => {
      if (n === 1) throw new Error("no");
      if (n === 2) throw cancel("no need");
    });
    const worker = await s.worker({ handlers: [handler], metrics: { port: 0 } });
    await s.sluice.enqueueMany(job, [0, 1, 2, 3]);
    await ended(s, 4);
    const scrape = await until("the slots to be told", async () => {
      const response = await fetch(`${worker.metricsUrl}/metrics`);
      const text = await response.text();
      return text.includes("sluice_concurrency_slots_limit{") && text;
    });
    expect(promtool(["check", "metrics"], scrape)).toEqual({ code: 0, said: "" });
    // promtool does complain about a bad scrape.
    const bad = scrape.replaceAll("sluice_worker_claims_total", "sluice_worker_claims");
    expect(promtool(["check", "metrics"], bad).code).not.toBe(0);
  });

  test("accepts the alert rules, which fire as expected", () => {
    const rules = promtool(["check", "rules", pathOf("docs/operate/alerts.yml")]);
    expect(rules).toMatchObject({ code: 0, said: expect.stringContaining("SUCCESS") as string });
    const tests = promtool(["test", "rules", pathOf("docs/operate/alerts.test.yml")]);
    expect(tests).toMatchObject({ code: 0, said: expect.stringContaining("SUCCESS") as string });
  });
});

test("alerts use only existing metrics, labels and outcomes", () => {
  const rules = readFileSync(pathOf("docs/operate/alerts.yml"), "utf8");
  const asked = [...rules.matchAll(/\bsluice_(\w+)/g)].map(([, name]) => name!);
  const names = Object.keys(catalogue);
  const known = (name: string): boolean => names.includes(name) || names.includes(name.replace(/_bucket$/, ""));
  expect(asked.length).toBeGreaterThan(8);
  expect(asked.filter((name) => !known(name))).toEqual([]);
});
