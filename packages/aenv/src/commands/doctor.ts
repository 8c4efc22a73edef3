import { readServerConfig } from "@aenv/server";
import type { Command } from "commander";
import type { Check } from "../doctor/check.ts";
import { chosenName, diagnose } from "../doctor/checks.ts";
import { examples } from "../options/examples.ts";
import { serverSettings } from "../server/settings.ts";
import { Failure } from "../terminal/failure.ts";
import { createPrinter } from "../terminal/printer.ts";
import { withSpinner } from "../terminal/spinner.ts";
import { table, truncate } from "../terminal/table.ts";
import type { Output, Terminal } from "../terminal/terminal.ts";

interface Options {
  readonly engine?: string;
  readonly runtime?: string;
  readonly home?: string;
  readonly dockerSocket?: string;
  readonly imageStore?: string;
  readonly sandboxUsers?: string;
  readonly runc?: string;
  readonly runsc?: string;
  readonly sandboxSubnet?: string;
  readonly kubeconfig?: string;
  readonly kubeNamespace?: string;
  readonly kubeNetworkPolicies?: string;
  readonly baseImage?: string;
  readonly podTemplates?: string;
  readonly runscClass?: string;
  readonly json?: boolean;
}

/** The settings of the server that are options here too. */
const SETTINGS = [
  ...["engine", "runtime", "home", "image-store", "sandbox-users", "docker-socket", "runc", "runsc", "sandbox-subnet"],
  ...["kubeconfig", "kube-namespace", "kube-network-policies", "base-image", "pod-templates", "runsc-class"],
];

export function define(command: Command, terminal: Terminal): void {
  command.description(
    "Tries which engines and tools work on this machine: it starts sandboxes, mounts an overlay and sets limits, and removes them again. With the engine kubernetes it also checks the rights, quota, runtime and storage classes, Pod Security and network policies of the cluster, and starts two pods there. For what does not work it prints the reason and how to get it. Fails if the chosen engine does not work. The options are settings of the server.",
  );
  for (const { flag, does, variable } of serverSettings()) {
    const [name = ""] = flag.slice(2).split(" ");
    if (SETTINGS.includes(name)) command.option(flag, `${does} [$${variable}]`);
  }
  command
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      examples(
        "aenv doctor",
        "aenv doctor --engine oci --runtime runsc",
        "aenv doctor --engine kubernetes --base-image registry.example/aenv-base:1",
        "aenv doctor --json",
      ),
    )
    .action((options: Options) => doctor(options, terminal));
}

async function doctor({ json = false, ...flags }: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, json);
  const config = readServerConfig({ flags: settingsIn(flags), variables: terminal.env });
  const { engines, parts } = await withSpinner(terminal, "Trying engines and tools", () => diagnose({ config, env: terminal.env }));
  const name = chosenName(config);
  const chosen = engines.find((one) => one.name === name) as Check;
  printer.json({ engine: name, works: chosen.ok, engines, parts });
  if (!printer.isJson) {
    printer.print(rows("engine", engines, printer.output));
    printer.print(rows("part", parts, printer.output));
    for (const { name, ok, detail, get } of parts) {
      if (ok) continue;
      const { colors } = printer.output;
      printer.print(`${colors.bold(name)}: ${detail}${get === null ? "" : `\n  ${colors.dim("To get it:")} ${get}`}`);
    }
  }
  // The answer says why, so nothing more is printed.
  if (!chosen.ok) throw printer.isJson ? new Failure([]) : failureOf(chosen);
}

/** Without options that every command has, such as `verbose`. */
function settingsIn(options: Options): Record<string, unknown> {
  const { engine, runtime, home, imageStore, sandboxUsers, dockerSocket, runc, runsc, sandboxSubnet } = options;
  const { kubeconfig, kubeNamespace, kubeNetworkPolicies, baseImage, podTemplates, runscClass } = options;
  return {
    ...{ engine, runtime, home, imageStore, sandboxUsers, dockerSocket, runc, runsc, sandboxSubnet },
    ...{ kubeconfig, kubeNamespace, kubeNetworkPolicies, baseImage, podTemplates, runscClass },
  };
}

function rows(title: string, checks: readonly Check[], output: Output): string {
  const { colors } = output;
  const lines = checks.map(({ name, ok, detail, use }) => [
    ok ? colors.green("✔") : colors.yellow("✗"),
    colors.bold(name),
    truncate(detail, 64),
    detail === use ? "" : colors.dim(use),
  ]);
  return table(["", title, "result", "used for"], lines, output);
}

function failureOf({ name, detail, get }: Check): Failure {
  return new Failure(`the engine ${name} ${detail}`, { hint: get === null ? undefined : `To get it: ${get}` });
}
