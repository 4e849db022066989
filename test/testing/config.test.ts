import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { task } from "../../src/index.js";
import { kit } from "./kit.js";

const handlers = [task("work").handle(() => 1)];

/** A config file of an application, with a port for metrics. */
function application(): string {
  const folder = mkdtempSync(join(tmpdir(), "sluice-kit-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "sluice.toml");
  writeFileSync(file, "[worker]\nmax_concurrent_tasks = 3\n[metrics]\nport = 0\n");
  return file;
}

test("a worker in a test ignores the config file of the application", async () => {
  vi.stubEnv("SLUICE_CONFIG", application());
  onTestFinished(() => void vi.unstubAllEnvs());
  const { sluice } = await kit();
  const worker = sluice.worker({ handlers });
  await worker.start();
  expect([worker.metricsUrl, worker.status().permitsMax]).toEqual([null, 1000]);
});

test("a worker in a test reads the config file that the test names", async () => {
  const { sluice } = await kit({ config: application() });
  const worker = sluice.worker({ handlers });
  await worker.start();
  expect(worker.metricsUrl).not.toBeNull();
  expect(worker.status().permitsMax).toBe(3);
});
