// Starts or joins a server, says so, and does as told.
import { startEmbedded } from "../../src/embedded/index.js";

const [dataDir, then] = process.argv.slice(2);
const server = await startEmbedded(dataDir ? { dataDir } : {});
console.log(`server ${JSON.stringify(server)}`);
// Without "stay" there is nothing left to do, and the server alone must not keep the process alive.
if (then === "stay") setInterval(() => {}, 60_000);
