import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/global.ts"],
    pool: "forks",
    testTimeout: 30_000,
    hookTimeout: 60_000,
    passWithNoTests: false,
    restoreMocks: true,
  },
});
