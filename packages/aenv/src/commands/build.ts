import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { formatRef } from "@aenv/contract";
import { type Command, Option } from "commander";
import { bundleProject } from "../bundle/bundle.ts";
import { contentText, leftOutText } from "../bundle/summary.ts";
import { writeImageArtifact } from "../image/artifact.ts";
import { buildImage, chooseBuilder } from "../image/build-image.ts";
import { type BuilderName, builderNames } from "../image/builder.ts";
import { type BundleContext, createBundleContext, DEFAULT_PORT } from "../image/bundle-context.ts";
import { saveCommand } from "../image/command-lines.ts";
import { type ImageOptions, planImage } from "../image/plan.ts";
import { examples } from "../options/examples.ts";
import { collect, collectPair } from "../options/pairs.ts";
import { dockerHost, readSettings, settingsPath } from "../platform/settings.ts";
import { hasCode } from "../project/has-code.ts";
import { loadTimeoutOption } from "../project/load-errors.ts";
import { type Project, readProject } from "../project/project.ts";
import { createPrinter } from "../terminal/printer.ts";
import { withSpinner } from "../terminal/spinner.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { warnProblems } from "../terminal/warning.ts";

interface Options extends ImageOptions {
  readonly workDir: string;
  readonly out: string;
  readonly image?: boolean;
  readonly builder?: BuilderName;
  readonly loadTimeout: number;
  readonly json?: boolean;
}

export function define(command: Command, terminal: Terminal): void {
  command
    .description(
      "Bundles the environment, all it imports and the files of `buildConfig.data` into one archive that needs no installation. The same sources give the same bytes, and the archive's name contains their digest. With --image, builds a container image from the project's Dockerfile, or from its bundle if it has none, and writes its name into config.json.",
    )
    .option("-w, --work-dir <folder>", "the project, or the name of a built-in environment", ".")
    .option("-o, --out <folder>", "the folder of the archive, relative to the project", "dist")
    .addOption(loadTimeoutOption())
    .option("--image", "build a container image; the options below imply it")
    .option("-n, --image-name <name>", "its name; else `buildConfig.image_name`, else the environment's")
    .option("-t, --image-tag <tag>", "its tag; else `buildConfig.image_tag`, else the version; may be repeated", collect)
    .option("-r, --registry <host>", "the registry; else the setting `build_config.registry.host`, else docker.io")
    .option("-s, --namespace <name>", "the part before the name; else the setting `build_config.registry.namespace`")
    .option("-p, --platform <platform>", "such as linux/arm64; several separated by commas need buildx and --push")
    .option("-f, --dockerfile <file>", "relative to the project; else `buildConfig.dockerfile`, else Dockerfile")
    .option("--build-arg <NAME=VALUE>", "an ARG of the Dockerfile; may be repeated", collectPair)
    .option("--push", "push it to the registry")
    .option("--no-push", "do not push it, which is the default")
    .addOption(new Option("--builder <name>", "the program that builds it; if not given, the first that works").choices(builderNames))
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      examples(
        "aenv build",
        "aenv build --work-dir ./my-env --out /srv/bundles",
        "aenv build --image --image-tag 1.0.0 --image-tag latest",
        "aenv build --image --registry ghcr.io --namespace my-team --push",
      ),
    )
    .action((options: Options) => (isImage(options) ? buildProjectImage(options, terminal) : buildArchive(options, terminal)));
}

/** The command of the original builds only images, so its options are enough. */
function isImage(options: Options): boolean {
  const { image, imageName, imageTag, registry, namespace, platform, dockerfile, buildArg, push, builder } = options;
  return [image, imageName, imageTag, registry, namespace, platform, dockerfile, buildArg, push, builder].some((one) => one !== undefined);
}

async function buildProjectImage(options: Options, caller: Terminal): Promise<void> {
  const own = readSettings(settingsPath(caller).path);
  const terminal = { ...caller, env: withDockerHost(caller.env, dockerHost(own)) };
  const printer = createPrinter(terminal, options.json === true);
  const project = readProject(options.workDir, terminal.cwd);
  warnProblems(terminal, project.warnings);
  const { root, config } = project;
  const { registry: settings = {} } = own.build_config ?? {};
  const plan = planImage({ root, config, options, settings, exists: existsSync });
  const builder = await withSpinner(terminal, "Looking for an image builder", () => chooseBuilder(options.builder, plan, terminal));
  const started = performance.now();
  // The server of a bundle listens where config.json says, or config.json learns where it listens.
  const named = config.deployConfig?.service?.port ?? config.deployConfig?.port;
  const port = named ?? DEFAULT_PORT;
  using bundled = plan.dockerfile === null ? await bundleContext(project, port, options, terminal) : null;
  const dockerfile = plan.dockerfile ?? bundled?.dockerfile ?? "";
  const built = await buildImage({ plan, settings, builder, dockerfile, context: bundled?.context ?? plan.context }, terminal);
  const [image = ""] = plan.references;
  const isBundleServer = bundled !== null && config.runtime === undefined;
  const hasServer = isBundleServer || named !== undefined || config.runtime !== undefined;
  writeImageArtifact(join(root, "config.json"), { image, port: isBundleServer && named === undefined ? port : null });
  const publish = await publishCommand(project, options);
  const durationMs = Math.round(performance.now() - started);
  printer.json({
    image,
    references: plan.references,
    id: built.id,
    builder,
    pushed: plan.isPushed,
    platforms: plan.platforms,
    publish,
    durationMs,
  });
  const hints = [
    ...(hasServer ? [] : [NO_SERVER]),
    ...(plan.isPushed ? [] : [NOT_PUSHED, ["For the engine oci of a server here:", loadCommand(builder, image)]]),
    ["config.json names the image. Publish it:", publish],
  ];
  const { colors } = printer.output;
  printer.print(
    `${colors.green("✔")} ${colors.bold(formatRef(config))} ${colors.dim(`built with ${builder} in ${Math.ceil(durationMs / 1_000)} s`)}`,
  );
  for (const reference of plan.references) printer.print(`  ${colors.cyan(reference)}${plan.isPushed ? colors.dim(" (pushed)") : ""}`);
  printer.print();
  for (const [text = "", command = ""] of hints) printer.print(`  ${colors.dim(text)} ${command}`.trimEnd());
}

const NO_SERVER = [
  "If the image has a server, write its port as deployConfig.port into config.json. Without it, instances run only commands.",
];
const NOT_PUSHED = ["It is only on this machine. With --push, servers elsewhere can pull it."];

/** The variable before the setting, as for everything else. */
function withDockerHost(env: Terminal["env"], socket: string | null): Terminal["env"] {
  if (socket === null || env.DOCKER_HOST || env.DOCKER_CONTEXT) return env;
  return { ...env, DOCKER_HOST: socket };
}

/** How a server of this machine gets an image that was not pushed. */
function loadCommand(builder: BuilderName, image: string): string {
  if (builder === "buildx" || builder === "docker") return `aenv image load docker-daemon:${image}`;
  const { program, args } = saveCommand(builder, image, "image.tar");
  return `${program} ${args.join(" ")} && aenv image load image.tar --name ${image}`;
}

/** The project's code would be published as a bundle, and the image not used. */
async function publishCommand(project: Project, { workDir }: Options): Promise<string> {
  return ["aenv push", ...((await hasCode(project)) ? ["--image-only"] : []), ...(workDir === "." ? [] : ["--work-dir", workDir])].join(
    " ",
  );
}

async function bundleContext(project: Project, port: number, options: Options, terminal: Terminal): Promise<BundleContext> {
  const loading = { timeoutMs: options.loadTimeout, onOutput: (text: string) => terminal.stderr.write(text) };
  return withSpinner(terminal, `Bundling ${project.config.name}`, async () =>
    createBundleContext((await bundleProject(project, loading)).bytes, port),
  );
}

async function buildArchive(options: Options, terminal: Terminal): Promise<void> {
  const printer = createPrinter(terminal, options.json === true);
  const project = readProject(options.workDir, terminal.cwd);
  warnProblems(terminal, project.warnings);
  const { archive, manifest, digest, bytes, leftOut } = await withSpinner(terminal, `Bundling ${project.config.name}`, async () => {
    const bundle = await bundleProject(project, { timeoutMs: options.loadTimeout, onOutput: (text) => terminal.stderr.write(text) });
    const out = resolve(project.root, options.out);
    const archive = join(out, `${bundle.manifest.name}-${bundle.manifest.version}-${bundle.digest.slice(0, 12)}.tar.gz`);
    mkdirSync(out, { recursive: true });
    writeFileSync(archive, bundle.bytes);
    return { archive, ...bundle };
  });
  printer.json({ archive, digest: `sha256:${digest}`, size: bytes.length, ...manifest, ...(leftOut.length > 0 && { leftOut }) });
  const { colors } = printer.output;
  const near = relative(terminal.cwd, archive);
  const path = near.startsWith("..") ? archive : near;
  printer.print(
    `${colors.green("✔")} ${colors.bold(formatRef(project.config))} ${colors.dim(`${contentText(manifest)}; ${kilobytes(bytes.length)}`)}`,
  );
  printer.print(`  ${colors.cyan(path)}`);
  printer.print(`  ${colors.dim(`sha256:${digest}`)}`);
  if (leftOut.length > 0) printer.print(`  ${colors.dim(leftOutText(leftOut))}`);
  printer.print();
  if (manifest.main === undefined)
    return printer.print(`  ${colors.dim("Run it here:")} aenv run   ${colors.dim("Publish it:")} aenv push`);
  printer.print(`  ${colors.dim("Run it:")} mkdir sandbox && tar -xzf ${path} -C sandbox && node sandbox/main.js --port 8081`);
}

function kilobytes(bytes: number): string {
  return `${Math.ceil(bytes / 1_000)} kB`;
}
