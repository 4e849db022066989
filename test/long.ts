// Tests that start many processes or take long: `npm run test:long`. All others are `npm test`, which shall
// be over in eight minutes on two cores.
export const long: readonly string[] = [
  "test/bench/**/*.test.ts",
  "test/cli/migrate.test.ts",
  "test/cli/plan.test.ts",
  "test/cli/workflow.test.ts",
  "test/client/prepared.test.ts",
  "test/demo/**/*.test.ts",
  "test/embedded/start.test.ts",
  "test/examples/**/*.test.ts",
  "test/fault/**/*.test.ts",
  "test/flow/limits.test.ts",
  "test/plan/real.test.ts",
  "test/postgres/model.test.ts",
  "test/testing/database.test.ts",
  "test/worker/pressure/memory.test.ts",
  "test/worker/workflow-fleet.test.ts",
];
