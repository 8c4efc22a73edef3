import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { canonicalJson } from "@aenv/contract";
import { describeRemoteAgent } from "@aenv/kit";
import type { Command } from "commander";
import { agentFiles } from "../../mount/agent-text.ts";
import { finishMount, nameFrom, openFolder } from "../../mount/folder.ts";
import { readSecrets, reference, refusalHint } from "../../mount/secrets.ts";
import { examples } from "../../options/examples.ts";
import { collect, collectPair } from "../../options/pairs.ts";
import { Failure } from "../../terminal/failure.ts";
import { createPrinter } from "../../terminal/printer.ts";
import { withSpinner } from "../../terminal/spinner.ts";
import type { Terminal } from "../../terminal/terminal.ts";

interface Options {
  readonly name?: string;
  readonly version: string;
  readonly workDir: string;
  readonly secret?: readonly string[];
  readonly header?: Readonly<Record<string, string>>;
  readonly allowPrivate?: boolean;
  readonly force?: boolean;
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .summary("make an environment of an agent that speaks A2A")
    .description(
      "Makes an environment project of an agent elsewhere that speaks A2A, 1.0 or 0.3, over JSON-RPC or HTTP+JSON. Its card is read now, and kept in the project with its digest.",
    )
    .argument("<url>", "the agent's address; its card is below, at .well-known/agent-card.json")
    .option("--name <name>", "the environment's name; made of the agent's if not given")
    .option("-v, --version <version>", "its first version", "1.0.0")
    .option("-w, --work-dir <folder>", "the folder in which the project's folder is created", ".")
    .option("--secret <NAME>", "a variable whose value is a secret: taken from your shell now, and on a platform from its secrets", collect)
    .option(
      "--header <NAME=VALUE>",
      `a header of each request, such as 'authorization=Bearer ${reference("TOKEN")}'; may be repeated`,
      collectPair,
    )
    .option("--allow-private", "allow a private or loopback address, of the card's address only")
    .option("--force", "write into a folder that is not empty; other files stay")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      examples(
        "aenv mount a2a https://agents.example.com/shop/",
        `aenv mount a2a https://agents.example.com/shop/ --secret TOKEN --header 'authorization=Bearer ${reference("TOKEN")}'`,
        "aenv mount a2a http://127.0.0.1:9999/ --allow-private --name local-agent",
      ),
    )
    .action((url: string, options: Options) => mountA2a(url, options, terminal));
}

async function mountA2a(url: string, options: Options, terminal: Terminal): Promise<void> {
  if (!URL.canParse(url) || !/^https?:/i.test(url))
    throw new Failure(`'${url}' is no URL that begins with http:// or https://`, { exit: "usage" });
  const printer = createPrinter(terminal, options.json === true);
  const signal = terminal.stopSignal();
  const variables = readSecrets(options.secret ?? [], terminal);
  const { host } = new URL(url);
  const connection = {
    ...(options.header !== undefined && { headers: options.header }),
    ...(options.allowPrivate === true && { allowPrivate: [host] }),
  };
  const card = await withSpinner(terminal, `Asking ${host} for its card`, () =>
    describeRemoteAgent(url, connection, variables, signal),
  ).catch((error: Error) => {
    throw new Failure(`the agent's card was not read: ${error.message}`, { hint: refusalHint(error), cause: error });
  });
  const { interface: used, ...said } = card;
  const digest = `sha256:${createHash("sha256").update(canonicalJson(said)).digest("hex")}`;
  const folder = openFolder({ ...options, name: options.name ?? nameFrom(card.name) }, terminal.cwd);
  const scratch = mkdtempSync(join(tmpdir(), "aenv-mount-"));
  try {
    const project = { name: folder.name, version: options.version, url, card, digest, connection, secrets: options.secret ?? [] };
    await finishMount(folder, agentFiles(project), join(scratch, "none"), { version: options.version, data: [] }, terminal);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  const spoken = `A2A ${used.version} over ${used.binding}`;
  const skills = card.skills.map(({ id }) => id);
  printer.json({
    name: folder.name,
    version: options.version,
    folder: folder.path,
    agent: card.name,
    protocol: used.version,
    binding: used.binding,
    skills,
    digest,
  });
  const { colors } = printer.output;
  printer.print(`${colors.green("✔")} Mounted ${colors.bold(card.name || host)} as ${colors.bold(folder.name)}: ${spoken}.`);
  if (skills.length > 0)
    printer.print(`  ${colors.dim(`${skills.length} skills: ${skills.slice(0, 8).join(", ")}${skills.length > 8 ? ", …" : ""}`)}`);
  folder.printNext(printer);
}
