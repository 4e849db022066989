// The contract suite through PgBouncer in transaction mode: every test of the public API, unchanged.
//   SLUICE_TEST_POOLER=listen  wake-ups over a direct connection
//   SLUICE_TEST_POOLER=poll    polling alone
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import everything from "../../vitest.config.js";

const contract = ["client", "worker", "flow", "schedules", "examples"];
// Parts of the names of tests that cannot pass here. PgBouncer keeps its own connections to the server and words its
// own errors for clients that connect.
const elsewhere = ["leaves no connection", "bear the name", "by the server's own word"];
// Tests of wake-ups, which polling does not have. Without them, the worker that polls first gets the task.
const bell = ["hardly ever polls", "without a poll", "wakes (a|one) sleeper", "3 workers share evenly"];
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
