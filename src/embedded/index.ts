export { startEmbedded, type Embedded, type EmbeddedOptions } from "./start.js";
