// Plain JavaScript, so that an old Node can run it and print which version is needed.
import { readFileSync } from "node:fs";

const { engines } = JSON.parse(readFileSync(new URL("../packages/aenv/package.json", import.meta.url), "utf8"));
const needed = Number.parseInt(engines.node.replace(">=", ""), 10);
if (Number.parseInt(process.versions.node, 10) < needed) {
  console.error(
    `AEnv needs Node ${needed} or newer, but this is ${process.versions.node}: on Linux x64 "npm install" installs one, elsewhere install it from https://nodejs.org.`,
  );
  process.exit(1);
}
