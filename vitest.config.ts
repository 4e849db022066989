import { configDefaults, defineConfig } from "vitest/config";
import { long } from "./test/long.js";

// Whoever names tests gets those, however long they take.
const named = process.argv.some((arg) => arg.startsWith("test/"));

export const shared = defineConfig({
  test: {
    globalSetup: ["test/support/global.ts"],
    pool: "forks",
    // Most tests wait most of the time.
    maxWorkers: 3,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // A signal is waited for; how long it may take is the machine's business.
    expect: { poll: { timeout: 20_000 } },
    passWithNoTests: false,
    restoreMocks: true,
  },
});

export default defineConfig({
  ...shared,
  test: {
    ...shared.test,
    include: ["test/**/*.test.ts"],
    exclude: [...configDefaults.exclude, ...(named ? [] : long)],
  },
});
