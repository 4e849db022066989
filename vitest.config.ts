import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/global.ts"],
    pool: "forks",
    // Most tests wait most of the time.
    maxWorkers: 3,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    passWithNoTests: false,
    restoreMocks: true,
  },
});
