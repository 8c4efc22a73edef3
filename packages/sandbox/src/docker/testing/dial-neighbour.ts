// Starts sandboxes with open egress, and prints what one reaches of the others: node dial-neighbour.ts <home> <socket> <with|without>
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { testRoot } from "../../fixtures/test-root.ts";
import { connectInit } from "../../init/connection.ts";
import { DockerEngine } from "../engine.ts";
import { OpenRules } from "../open-rules.ts";
import { openHomeId } from "../record.ts";

const [home = "", socket = "", rules = ""] = process.argv.slice(2);
const { signal } = new AbortController();
const engine = new DockerEngine({ home, socket, base: async () => testRoot() });
const spec = { command: [], variables: {}, labels: {}, startTimeoutMs: 60_000, listening: { kind: "none" } as const };
const caller = await engine.create({ ...spec, id: "caller", egress: "open" }, signal);
const created = await engine.create({ ...spec, id: "created", egress: "open" }, signal);
const changed = await engine.create({ ...spec, id: "changed", egress: "open" }, signal);
await changed.setEgress?.("none");
await changed.setEgress?.("open");

// As on a machine without the module br_netfilter, with which the rules for routed packets see those of a bridge too.
for (const name of ["iptables", "ip6tables"]) {
  const file = `/proc/sys/net/bridge/bridge-nf-call-${name}`;
  if (existsSync(file)) writeFileSync(file, "0");
}
const { bridge } = new OpenRules(openHomeId(`${home}/docker`));
if (rules === "without") {
  execFileSync("nft", ["delete", "table", "bridge", bridge]);
  const ports = JSON.parse(execFileSync("ip", ["-json", "link", "show", "master", bridge], { encoding: "utf8" })) as { ifname: string }[];
  for (const { ifname } of ports) execFileSync("ip", ["link", "set", "dev", ifname, "type", "bridge_slave", "isolated", "off"]);
}

const listen = `
  const { createServer } = require("net");
  const addresses = Object.values(require("os").networkInterfaces()).flat().filter((one) => !one.internal);
  createServer((socket) => socket.end("here")).listen(7000, "::", () => {
    console.log(JSON.stringify(addresses.map(({ address, family }) => (family === "IPv6" ? address + "%eth0" : address))));
    // A new address is tentative for a second, in which it is not used.
    const isTentative = (line) => parseInt(line.split(" ")[4], 16) & 0x40;
    const wait = setInterval(() => {
      if (require("fs").readFileSync("/proc/net/if_inet6", "utf8").split("\\n").some(isTentative)) return;
      clearInterval(wait);
      console.log("listening");
    }, 20);
  });
`;
const dial = `
  const dial = (host) => new Promise((resolve) => {
    const socket = require("net").connect({ host, port: 7000 });
    socket.setTimeout(4000, () => resolve("no answer"));
    socket.on("data", (data) => resolve(String(data)));
    socket.on("error", () => resolve("no answer"));
  });
  Promise.all(process.argv.slice(1).map(dial)).then((seen) => (console.log(JSON.stringify(seen)), process.exit()));
`;
const seen: Record<string, readonly string[]> = {};
for (const one of [created, changed]) {
  await using init = await connectInit(one.initAddress as never, engine.initKey, signal);
  const listener = await init.spawn({ argv: ["/usr/bin/node", "-e", listen] });
  let said = "";
  while (!said.includes("listening")) said += String((await once(listener.stdout, "data"))[0]);
  await using from = await connectInit(caller.initAddress as never, engine.initKey, signal);
  const { stdout } = await from.run({ argv: ["/usr/bin/node", "-e", dial, ...(JSON.parse(said.split("\n")[0] ?? "") as string[])] });
  seen[one.id] = JSON.parse(String(stdout));
}
await Promise.all([caller, created, changed].map((one) => one.destroy()));
await engine.close();
const tables = execFileSync("nft", ["list", "tables"], { encoding: "utf8" });
console.log(JSON.stringify({ seen, hasRules: tables.includes(bridge) }));
