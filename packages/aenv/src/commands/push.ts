import { type EnvironmentConfig, formatRef, isObject, isPlatformError, messageOf, type Visibility, visibilities } from "@aenv/contract";
import { type Command, Option } from "commander";
import { bundleProject } from "../bundle/bundle.ts";
import { contentText, leftOutText } from "../bundle/summary.ts";
import { examples } from "../options/examples.ts";
import { collect } from "../options/pairs.ts";
import {
  addPlatformOptions,
  callServer,
  nextCommand,
  openPlatform,
  type Platform,
  type PlatformOptions,
  withServerHint,
} from "../platform/platform.ts";
import { hasCode } from "../project/has-code.ts";
import { loadTimeoutOption } from "../project/load-errors.ts";
import { type Project, readProject, withName, withVersion } from "../project/project.ts";
import { Failure } from "../terminal/failure.ts";
import { createPrinter } from "../terminal/printer.ts";
import { progressBar } from "../terminal/progress-bar.ts";
import { withSpinner } from "../terminal/spinner.ts";
import { bytesText } from "../terminal/table.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { warn, warnProblems } from "../terminal/warning.ts";

interface Options extends PlatformOptions {
  readonly workDir: string;
  readonly version?: string;
  readonly name?: string;
  readonly dryRun?: boolean;
  readonly imageOnly?: boolean;
  readonly verify: boolean;
  readonly visibility?: Visibility;
  readonly shareWith?: string[];
  readonly force?: boolean;
  readonly loadTimeout: number;
  readonly json?: boolean;
}

/** The hub starts the environment before it answers, and a start may take a minute. */
const PUBLISH_TIMEOUT_MS = 120_000;

export function define(command: Command, terminal: Terminal): void {
  command
    .description(
      "Bundles the environment and publishes it. A published version never changes: publishing identical content again is a no-op, different content needs a new version.",
    )
    .option("-w, --work-dir <folder>", "the project, or the name of a built-in environment", ".")
    .option("-v, --version <version>", "publish under this version instead of config.json's")
    .option("--name <name>", "publish under this name instead of config.json's")
    .option("--dry-run", "print what would be done, without doing it")
    .option(
      "--image-only",
      "publish the image that config.json names, without the project's code: its instances run the image's own server",
    )
    .option("--no-verify", "do not start the environment on the server to check it")
    .addOption(
      new Option("--visibility <who>", "who sees it; if not given, as the previous version, or private for the first").choices(
        visibilities,
      ),
    )
    .option("--share-with <owner>", "an owner who sees it too; may be repeated", collect)
    .addOption(loadTimeoutOption())
    .addOption(new Option("--force").hideHelp())
    .option("--json", "print JSON");
  addPlatformOptions(command)
    .addHelpText(
      "after",
      examples(
        "aenv push",
        "aenv push --dry-run",
        "aenv push --version 1.1.0 --visibility public",
        "aenv push --work-dir tau2",
        "aenv push --work-dir swe-bench --name swebench",
      ),
    )
    .action((options: Options) => push(options, terminal));
}

/** Also used by commands that have made a project. */
export async function push(options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const { colors } = printer.output;
  if (options.force) terminal.stderr.write("--force has no effect: a published version never changes\n");
  const project = withName(withVersion(readProject(options.workDir, terminal.cwd), options.version), options.name);
  warnProblems(terminal, project.warnings);
  const { config } = project;
  const ref = formatRef(config);
  const platform = openPlatform(options, terminal, { timeoutMs: PUBLISH_TIMEOUT_MS });
  const loading = { timeoutMs: options.loadTimeout, onOutput: (text: string) => terminal.stderr.write(text) };
  // An image may hold all of the environment, in any language; the project then has nothing to bundle.
  const bundle = (await isImageOnly(project, options))
    ? null
    : await withSpinner(terminal, `Bundling ${config.name}`, () => bundleProject(project, loading));
  const digest = bundle === null ? null : `sha256:${bundle.digest}`;
  const size = bundle?.bytes.length ?? 0;

  const { isKnown, isUploaded } = await callServer(terminal, `Asking ${platform.hubUrl}`, () =>
    findPublished(platform, ref, digest, config),
  );
  const image = config.artifacts?.find(({ type }) => type === "image")?.content ?? null;
  const summary = { name: config.name, version: config.version, digest, size, image, hub: platform.hubUrl };
  if (options.dryRun) {
    printer.json({ ...summary, dryRun: true, wouldPublish: !isKnown, wouldUpload: !isUploaded });
    if (isKnown) printer.print(`${colors.bold(ref)} is already published at ${platform.hubUrl}; nothing would be done`);
    else
      printer.print(
        `Would publish ${colors.bold(ref)} at ${platform.hubUrl}, ${describeContent(isUploaded, size, digest === null ? image : null)}. Nothing was done.`,
      );
    return;
  }

  if (!isUploaded && bundle !== null) await upload(platform, ref, `sha256:${bundle.digest}`, bundle.bytes, terminal);
  const others = (config.artifacts ?? []).filter(({ type }) => type !== "bundle");
  const artifacts = digest === null ? others : [...others, { type: "bundle", content: digest }];
  const access = {
    ...(options.visibility && { visibility: options.visibility }),
    ...(options.shareWith && { sharedWith: options.shareWith }),
  };
  await callServer(terminal, `Publishing ${ref}`, () =>
    platform.hub.create(ref, { ...config, artifacts, ...access }, { verify: options.verify }),
  ).catch((error: unknown) => {
    throw isPlatformError((error as Failure).cause, "environment.exists") ? contentDiffers(config) : error;
  });
  printer.json({ ...summary, published: !isKnown });
  if (isKnown) {
    const seen = options.visibility === undefined ? "nothing was changed" : `it is ${options.visibility} now`;
    printer.print(`${colors.green("✔")} ${colors.bold(ref)} is already published at ${platform.hubUrl}; ${seen}`);
    return;
  }
  printer.print(`${colors.green("✔")} ${colors.bold(ref)} is published at ${colors.cyan(platform.hubUrl)}`);
  if (image !== null) printer.print(`  ${colors.dim(imageText(image, bundle !== null, config))}`);
  if (bundle !== null)
    printer.print(`  ${colors.dim(`${contentText(bundle.manifest)}; ${bytesText(size)}; sha256:${bundle.digest.slice(0, 12)}`)}`);
  if (bundle !== null && bundle.leftOut.length > 0) printer.print(`  ${colors.dim(leftOutText(bundle.leftOut))}`);
  const warning = options.verify === false ? null : await tasksWarning(platform, ref);
  if (warning !== null) warn(terminal, warning);
  printer.print();
  printer.print(`  ${colors.dim("Start an instance:")} ${nextCommand(`aenv instance create ${ref}`, options, colors)}`);
}

/** A warning if the server could not list the environment's tasks. It is already published, so an error here must not fail the command. */
async function tasksWarning({ hub }: Platform, ref: string): Promise<string | null> {
  try {
    const { metadata } = await hub.get(ref);
    if (!isObject(metadata) || typeof metadata.tasksProblem !== "string") return null;
    // The prefix repeats the start of this sentence.
    return `Its tasks could not be listed on the server: ${metadata.tasksProblem.replace(/^tasks of the environment failed: /, "")}`;
  } catch (error) {
    return `It is published, but could not be read back to see whether its tasks can be listed: ${messageOf(error)}`;
  }
}

/** Whether the hub has the version and the bundle. Throws before the upload if the version has different content. */
async function findPublished({ hub }: Platform, ref: string, digest: string | null, config: EnvironmentConfig) {
  if (!(await hub.exists(ref)).exists) return { isKnown: false, isUploaded: digest === null || (await hub.hasBundle(digest)) };
  const { bundle_digest: published } = await hub.get(ref);
  if (published !== digest) throw contentDiffers(config);
  return { isKnown: true, isUploaded: true };
}

/** Whether only the image is published: because that was asked for, or because the project has no code that could be bundled. */
async function isImageOnly(project: Project, { imageOnly = false }: Options): Promise<boolean> {
  const { config } = project;
  if (!config.artifacts?.some(({ type }) => type === "image")) {
    if (!imageOnly) return false;
    throw new Failure("config.json names no image", { exit: "usage", hint: "Build and push one first: aenv build --image --push" });
  }
  if (imageOnly) return true;
  return config.runtime === undefined && !(await hasCode(project));
}

/** What the image of config.json is for. An instance does not say it: it runs either way. */
function imageText(image: string, isBundled: boolean, { runtime, deployConfig = {} }: EnvironmentConfig): string {
  if (isBundled && runtime === undefined)
    return `instances run the bundle, not the image ${image}; to publish the image: aenv push --image-only`;
  const hasServer = runtime !== undefined || (deployConfig.service?.port ?? deployConfig.port) !== undefined;
  return hasServer ? `image ${image}` : `image ${image}, without a server: config.json has no deployConfig.port`;
}

function describeContent(isUploaded: boolean, size: number, image: string | null): string {
  if (image !== null) return `with the image ${image}`;
  return isUploaded ? "which already has the bundle" : `with a bundle of ${bytesText(size)}`;
}

async function upload({ hub }: Platform, ref: string, digest: string, bytes: Uint8Array, terminal: Terminal): Promise<void> {
  const bar = progressBar(terminal, `Uploading ${ref}`, bytes.length);
  try {
    await hub.uploadBundle(digest, bytes, { onProgress: (count) => bar.at(count) });
  } catch (error) {
    throw withServerHint(error);
  } finally {
    bar.end();
  }
}

function contentDiffers({ name, version }: EnvironmentConfig): Failure {
  return new Failure(`${name}@${version} is already published with different content`, {
    code: "environment.exists",
    hint: `A published version never changes: raise "version" in config.json, or push with --version ${next(version)}`,
  });
}

/** `1.0.3` after `1.0.2`; `NEW` for a version that does not end in a number. */
function next(version: string): string {
  const parts = /^(.*?)(\d+)$/.exec(version);
  return parts === null ? "NEW" : `${parts[1]}${Number(parts[2]) + 1}`;
}
