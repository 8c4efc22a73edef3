// Starts a sandbox with open egress, and prints what it reaches: node dial-from-sandbox.ts <home> <socket> <with|without> <host:port>...
import { execFileSync } from "node:child_process";
import { testRoot } from "../../fixtures/test-root.ts";
import { connectInit } from "../../init/connection.ts";
import { DockerEngine } from "../engine.ts";
import { OpenRules } from "../open-rules.ts";
import { openHomeId } from "../record.ts";

const [home = "", socket = "", rules = "", ...targets] = process.argv.slice(2);
const { signal } = new AbortController();
const lines: string[] = [];
const engine = new DockerEngine({ home, socket, base: async () => testRoot(), log: (line) => lines.push(line) });
const spec = { id: "one", command: [], variables: {}, labels: {}, startTimeoutMs: 60_000, listening: { kind: "none" } as const };
const sandbox = await engine.create({ ...spec, egress: "open" }, signal);
const { bridge } = new OpenRules(openHomeId(`${home}/docker`));
if (rules === "without") execFileSync("nft", ["delete", "table", "inet", bridge]);
const dial = `
  const dial = ([host, port]) => new Promise((resolve) => {
    const socket = require("net").connect({ host, port: Number(port) });
    socket.setTimeout(5000, () => resolve("no answer"));
    socket.on("data", (data) => resolve("got " + String(data).split(" ")[0]));
    socket.on("error", () => resolve("refused"));
  });
  const addresses = Object.values(require("os").networkInterfaces()).flat().filter((one) => !one.internal);
  const gateway = addresses[0].address.replace(/[0-9]+$/, "1");
  const all = process.argv.slice(1).map((target) => target.replace("GATEWAY", gateway).split(":"));
  Promise.all(all.map(dial)).then((seen) => (console.log(JSON.stringify(seen)), process.exit()));
`;
await using init = await connectInit(sandbox.initAddress as never, engine.initKey, signal);
const { stdout, stderr } = await init.run({ argv: ["/usr/bin/node", "-e", dial, ...targets] });
await sandbox.destroy();
await engine.close();
const tables = execFileSync("nft", ["list", "tables"], { encoding: "utf8" });
console.log(
  JSON.stringify({ seen: JSON.parse(String(stdout) || JSON.stringify(String(stderr))), lines, hasRules: tables.includes(bridge) }),
);
