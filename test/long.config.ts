import { defineConfig, mergeConfig } from "vitest/config";
import { shared } from "../vitest.config.js";
import { long } from "./long.js";

export default mergeConfig(shared, defineConfig({ test: { include: [...long] } }));
