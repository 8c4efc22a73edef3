import { readFileSync } from "node:fs";
import { serverConfig } from "@aenv/server";
import { describe, expect, it } from "vitest";
import { serverSettings } from "./settings.ts";

const guide = readFileSync(new URL("../../../../docs/guides/run-a-server.md", import.meta.url), "utf8");

describe("the server's settings", () => {
  it("are all there as flags and variables, each with what it does", () => {
    const settings = serverSettings();
    expect(settings.map(({ key }) => key)).toEqual(Object.keys(serverConfig.shape));
    for (const { does, key } of settings) expect(does, key).not.toBe("");
    expect(settings.find(({ key }) => key === "controlPort")).toEqual({
      key: "controlPort",
      flag: "--control-port <number>",
      variable: "AENV_CONTROL_PORT",
      does: "control and hub",
      usual: "8080",
      isList: false,
    });
  });

  it.each([
    ["access", "--access <auto|on|off>"],
    ["allowedHosts", "--allowed-hosts <a,b>"],
    ["home", "--home <text>"],
    ["idsAreKeys", "--ids-are-keys [true|false]"],
    ["memoryMb", "--memory-mb <number>"],
    ["publicUrl", "--public-url <url>"],
    ["startTimeout", "--start-timeout <duration>"],
  ])("say what is to be written behind the flag of %s", (key, flag) => {
    expect(serverSettings().find((one) => one.key === key)?.flag).toBe(flag);
  });

  it("stand in the operator's guide as they are", () => {
    const rows = serverSettings().map(({ key, flag, usual, does }) => {
      const [name] = flag.split(" ");
      return `| \`${key}\` | \`${name}\` | ${usual === "" ? "" : `\`${usual}\``} | ${does} |`;
    });
    const documented = guide.split("\n").filter((line) => /^\| `\w+` \| `--/.test(line));
    expect(documented, "the table in docs/guides/run-a-server.md is not what the schema says").toEqual(rows);
  });
});
