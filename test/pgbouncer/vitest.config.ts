// The contract suite through PgBouncer in transaction mode: every test of the public API, unchanged.
//   SLUICE_TEST_POOLER=listen  wake-ups over a direct connection
//   SLUICE_TEST_POOLER=poll    polling alone
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import everything from "../../vitest.config.js";

const contract = ["client", "worker", "flow", "schedules", "examples"];
// Parts of the names of tests that cannot pass here. PgBouncer keeps its own connections to the server and words its
// own errors for clients that connect.
// Tests of wake-ups, which polling does not have. Without them, the worker that polls first gets the task.
const elsewhere = ["leaves no connection", "application_name comes", "reports the SQLSTATE"];
const bell = ["rarely polls", "without a poll", "wakes (an|one) idle worker", "3 workers share a backlog evenly"];
const leftOut = process.env.SLUICE_TEST_POOLER === "poll" ? [...elsewhere, ...bell] : elsewhere;

export default defineConfig({
  root: fileURLToPath(new URL("../..", import.meta.url)),
  test: {
    ...everything.test,
    include: contract.map((folder) => `test/${folder}/**/*.test.ts`),
    testNamePattern: new RegExp(`^(?!.*(?:${leftOut.join("|")}))`),
    globalSetup: ["test/support/global.ts", "test/pgbouncer/setup.ts"],
    setupFiles: ["test/pgbouncer/through.ts"],
  },
});
