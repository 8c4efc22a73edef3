// Plain JavaScript, so that a Node too old for the rest can read it and say so in one line.
import { readFileSync } from "node:fs";

const { engines } = JSON.parse(readFileSync(new URL("../packages/aenv/package.json", import.meta.url), "utf8"));
const needed = Number.parseInt(engines.node.replace(">=", ""), 10);
if (Number.parseInt(process.versions.node, 10) < needed) {
  console.error(
    `AEnv needs Node ${needed} or newer, but this is ${process.versions.node}: on Linux x64 "npm install" here brings one, elsewhere install it from https://nodejs.org.`,
  );
  process.exit(1);
}
