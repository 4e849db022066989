// The contract suite through PgBouncer in transaction mode: every test of the public API, as it is.
//   SLUICE_TEST_POOLER=listen  wake-ups over a direct connection
//   SLUICE_TEST_POOLER=poll    polling alone
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import everything from "../../vitest.config.js";

const contract = ["client", "worker", "flow", "schedules", "examples"];
// The connections to the server are PgBouncer's, and it keeps them; and what the server says to who comes
// in, it says in its own words.
const elsewhere = ["leaves no connection", "bear the name", "by the server's own word"];
// About the bell, which does not ring here. Without it workers share by who happens to look first.
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
