import { mkdirSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { formatRef } from "@aenv/contract";
import type { Command } from "commander";
import { bundleProject } from "../bundle/bundle.ts";
import { examples } from "../options/examples.ts";
import { loadTimeoutOption } from "../project/load-errors.ts";
import { readProject } from "../project/project.ts";
import { Failure } from "../terminal/failure.ts";
import { createPrinter } from "../terminal/printer.ts";
import { withSpinner } from "../terminal/spinner.ts";
import { countText } from "../terminal/table.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { warnProblems } from "../terminal/warning.ts";

interface Options {
  readonly workDir: string;
  readonly out: string;
  readonly image?: boolean;
  readonly loadTimeout: number;
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .description(
      "Bundles the environment, all it imports and the files of `buildConfig.data` into one archive that needs no installation. The same sources give the same bytes, and the archive's name contains their digest.",
    )
    .option("-w, --work-dir <folder>", "the project, or the name of a built-in benchmark", ".")
    .option("-o, --out <folder>", "the folder of the archive, relative to the project", "dist")
    .addOption(loadTimeoutOption())
    .option("--image", "build a container image instead (not available in this version)")
    .option("--json", "print JSON")
    .addHelpText("after", examples("aenv build", "aenv build --work-dir ./my-env --out /srv/bundles", "aenv build --json"))
    .action((options: Options) => buildArchive(options, terminal));
}

async function buildArchive(options: Options, terminal: Terminal): Promise<void> {
  if (options.image) {
    throw new Failure("--image is not available in this version", {
      exit: "usage",
      hint: "Leave it out to build an archive, which runs with Node 24 or newer.",
    });
  }
  const printer = createPrinter(terminal, options.json === true);
  const project = readProject(options.workDir, terminal.cwd);
  warnProblems(terminal, project.warnings);
  const { archive, manifest, digest, bytes } = await withSpinner(terminal, `Bundling ${project.config.name}`, async () => {
    const bundle = await bundleProject(project, { timeoutMs: options.loadTimeout, onOutput: (text) => terminal.stderr.write(text) });
    const out = resolve(project.root, options.out);
    const archive = join(out, `${bundle.manifest.name}-${bundle.manifest.version}-${bundle.digest.slice(0, 12)}.tar.gz`);
    mkdirSync(out, { recursive: true });
    writeFileSync(archive, bundle.bytes);
    return { archive, ...bundle };
  });
  printer.json({ archive, digest: `sha256:${digest}`, size: bytes.length, ...manifest });
  const { colors } = printer.output;
  const near = relative(terminal.cwd, archive);
  const path = near.startsWith("..") ? archive : near;
  const counts = [
    countText(manifest.tools.length, "tool"),
    countText(manifest.functions.length, "function"),
    countText(manifest.rewards.length, "reward"),
  ];
  printer.print(
    `${colors.green("✔")} ${colors.bold(formatRef(project.config))} ${colors.dim(`${counts.join(", ")}; ${kilobytes(bytes.length)}`)}`,
  );
  printer.print(`  ${colors.cyan(path)}`);
  printer.print(`  ${colors.dim(`sha256:${digest}`)}`);
  printer.print();
  printer.print(`  ${colors.dim("Run it:")} mkdir sandbox && tar -xzf ${path} -C sandbox && node sandbox/main.js --port 8081`);
}

function kilobytes(bytes: number): string {
  return `${Math.ceil(bytes / 1_000)} kB`;
}
