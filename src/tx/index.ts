export { fromDrizzle, type DrizzleTransaction } from "./drizzle.js";
export { fromKnex, type KnexTransaction } from "./knex.js";
export { fromKysely, type KyselyTransaction } from "./kysely.js";
export { fromPostgresJs, type PostgresJsTransaction } from "./postgresjs.js";
export { fromPrisma, type PrismaTransaction } from "./prisma.js";
