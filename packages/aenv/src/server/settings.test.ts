import { readFileSync } from "node:fs";
import { serverConfig } from "@aenv/server";
import { describe, expect, it } from "vitest";
import { aenv } from "../testing/cli.ts";
import { headingOf, settingOrder } from "./setting-groups.ts";
import { serverSettings } from "./settings.ts";

const reference = readFileSync(new URL("../../../../docs/reference/settings.md", import.meta.url), "utf8");

describe("the server's settings", () => {
  it("all have a flag, a variable and a description", () => {
    const settings = serverSettings();
    expect(settings.map(({ key }) => key)).toEqual(Object.keys(serverConfig.shape));
    for (const { does, key } of settings) expect(does, key).not.toBe("");
    expect(settings.find(({ key }) => key === "controlPort")).toEqual({
      key: "controlPort",
      flag: "--control-port <number>",
      variable: "AENV_CONTROL_PORT",
      does: "port of the control API and the hub",
      defaultText: "8080",
      isList: false,
    });
  });

  it("are grouped in the help, each below one heading, the ten that matter first", async () => {
    expect(serverSettings().filter(({ key }) => headingOf(key) === null)).toEqual([]);
    expect([...settingOrder].sort()).toEqual(Object.keys(serverConfig.shape).sort());
    const { stdout } = await aenv(["server", "--help"]);
    const [, first = ""] = /^Settings that matter first:$([\s\S]*?)^\S/m.exec(stdout) ?? [];
    expect(first.match(/^ {2}--/gm)).toHaveLength(10);
    expect(stdout).not.toContain("Other settings");
  });

  it.each([
    ["access", "--access <auto|on|off>"],
    ["allowedHosts", "--allowed-hosts <a,b>"],
    ["egressLimit", "--egress-limit <text>"],
    ["home", "--home <text>"],
    ["idsAreKeys", "--ids-are-keys [true|false]"],
    ["memoryMb", "--memory-mb <number>"],
    ["metricsToken", "--metrics-token <text>"],
    ["publicUrl", "--public-url <url>"],
    ["linkUrl", "--link-url <url>"],
    ["workers", "--workers <number>"],
    ["startTimeout", "--start-timeout <duration>"],
  ])("have the kind of value in the flag of %s", (key, flag) => {
    expect(serverSettings().find((one) => one.key === key)?.flag).toBe(flag);
  });

  it("are in the reference page as in the schema", () => {
    const rows = serverSettings().map(({ key, flag, variable, defaultText, does }) => {
      const cells = [`\`${key}\``, `\`${flag}\``, `\`${variable}\``, defaultText === "" ? "" : `\`${defaultText}\``, does];
      return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
    });
    expect(reference.split("\n").filter((line) => /^\| `\w+` \| `--/.test(line))).toEqual(rows);
  });
});
